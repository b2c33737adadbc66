"""As much of Numba as the client uses, with device memory of the driver's and arithmetic of the host's."""
from . import cuda as cuda

__version__ = "made up"
