"""What one caller within its rights does to its neighbours."""
