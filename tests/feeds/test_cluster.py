"""What is said of a cluster that does not do its part."""

import socket

import pytest

from feeds.cluster import ClusterError, is_local, require_master


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,4]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://h1:7077", False),
        ("yarn", False),
        ("k8s://https://there", False),
        ("locally", False),
    ],
)
def test_which_masters_are_here(master, expected):
    assert is_local(master) is expected


def test_an_unreachable_master_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        with pytest.raises(
            ClusterError, match=rf"no Spark master responds at spark://127\.0\.0\.1:{port}"
        ):
            require_master(f"spark://127.0.0.1:{port}")
        taken.listen()
        require_master(f"spark://127.0.0.1:{port}")
        require_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")


def test_an_address_that_is_none_is_named():
    with pytest.raises(ClusterError, match="no Spark master responds at spark://h:x"):
        require_master("spark://h:x")


def test_other_managers_are_not_looked_at():
    require_master("yarn")
    require_master("local[*]")
