"""Boolean subscriptions: everything that matches, within a range about the device."""
