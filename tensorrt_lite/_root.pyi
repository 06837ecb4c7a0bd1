"""Types of the names of the root module that are there from the start."""

from tensorrt_lite import *  # noqa: F403
