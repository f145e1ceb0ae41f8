"""GPU memory that can be given back and taken again at the same addresses, so that captured CUDA graphs stay valid.

The CUDA driver's virtual memory management, called through ctypes: addresses are reserved once; physical memory is put
behind the first part of them when it is needed (`map`) and taken away while others need it (`unmap`).
"""

from __future__ import annotations

import contextlib
import ctypes
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import torch

DEVICE, PINNED, READ_AND_WRITE, MINIMUM = 1, 1, 3, 0  # constants of cuda.h


class MappingError(RuntimeError):
    """A call of the CUDA driver failed; the message names it."""


class Location(Structure):  # CUmemLocation
    _fields_ = (("type", c_int), ("id", c_int))


class Properties(Structure):  # CUmemAllocationProp
    _fields_ = (("type", c_int), ("handle", c_int), ("location", Location), ("data", c_void_p), ("flags", c_uint64))


class Access(Structure):  # CUmemAccessDesc
    _fields_ = (("location", Location), ("flags", c_int))


FUNCTIONS: dict[str, tuple[Any, ...]] = {  # the types of the arguments; all return a CUresult
    "cuMemGetAllocationGranularity": (POINTER(c_size_t), POINTER(Properties), c_int),
    "cuMemAddressReserve": (POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemAddressFree": (c_uint64, c_size_t),
    "cuMemCreate": (POINTER(c_uint64), c_size_t, POINTER(Properties), c_uint64),
    "cuMemMap": (c_uint64, c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemSetAccess": (c_uint64, c_size_t, POINTER(Access), c_size_t),
    "cuMemUnmap": (c_uint64, c_size_t),
    "cuMemRelease": (c_uint64,),
}


def driver() -> Any:
    """Load the CUDA driver, with the types of all functions that are used."""
    library = ctypes.CDLL("libcuda.so.1")
    for name, types in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, c_int
    return library


class Addresses:
    """`size` bytes of reserved addresses, the first `mapped` of them with memory. They are freed with the object."""

    def __init__(self, library: Any, device: int, size: int) -> None:
        self.library, self.mapped = library, 0
        self.parts: list[tuple[int, int]] = []  # (address, size) of each mapping
        self.properties = Properties(type=PINNED, location=Location(DEVICE, device))
        self.access = Access(Location(DEVICE, device), READ_AND_WRITE)
        unit, address = c_size_t(), c_uint64()
        self._call("cuMemGetAllocationGranularity", byref(unit), byref(self.properties), MINIMUM)
        self.unit = unit.value
        self.size = -(-size // self.unit) * self.unit
        self._call("cuMemAddressReserve", byref(address), self.size, 0, 0, 0)
        self.address = address.value
        where = {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 3}
        self.__cuda_array_interface__ = where  # how torch finds it

    def map(self, count: int) -> None:
        """Put memory behind the first `count` bytes, as far as there is none yet."""
        more = -(-min(count, self.size) // self.unit) * self.unit - self.mapped
        handle, address = c_uint64(), self.address + self.mapped
        if more <= 0:
            return
        self._call("cuMemCreate", byref(handle), more, byref(self.properties), 0)
        try:
            self._call("cuMemMap", address, more, 0, handle, 0)
            self.parts.append((address, more))
            self.mapped += more
        finally:
            self._call("cuMemRelease", handle)  # what is mapped stays until it is unmapped
        self._call("cuMemSetAccess", address, more, byref(self.access), 1)

    def unmap(self) -> None:
        while self.parts:
            address, size = self.parts[-1]
            self._call("cuMemUnmap", address, size)
            self.parts.pop()
            self.mapped -= size

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the very end the driver may be gone
            torch.cuda.synchronize(self.properties.location.id)
            self.unmap()
            self._call("cuMemAddressFree", self.address, self.size)

    def _call(self, name: str, *arguments: Any) -> None:
        result = getattr(self.library, name)(*arguments)
        if result:
            raise MappingError(f"{name} failed with CUresult {result}" + " (out of memory)" * (result == 2))


class MappedMemory:
    """Bytes on a GPU as one tensor, whose address never changes. Only the first `mapped` of them may be touched."""

    def __init__(self, device: torch.device, size: int) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        torch.zeros(1, device=self.device)  # makes the context that the driver's calls need
        with torch.cuda.device(self.device):
            self.addresses = Addresses(driver(), self.device.index, size)
            self.addresses.map(1)  # torch looks at the first byte to find the device
            self.tensor: torch.Tensor = torch.as_tensor(self.addresses, device=self.device)  # (size,), uint8
        self._check()

    @property
    def mapped(self) -> int:
        return self.addresses.mapped

    def map(self, count: int) -> None:
        with torch.cuda.device(self.device):
            torch.cuda.synchronize()  # which also makes the context this thread's own
            self.addresses.map(count)

    def unmap(self) -> None:
        with torch.cuda.device(self.device):
            torch.cuda.synchronize()
            self.addresses.unmap()

    def _check(self) -> None:
        """Write and read back; once more after the memory was given back and taken again."""
        part = self.tensor[: self.addresses.unit]
        for value in (1, 2):
            self.map(1)
            part.fill_(value)
            if part.data_ptr() != self.addresses.address or int(part.sum(dtype=torch.int64)) != value * len(part):
                raise MappingError("what was written could not be read back")
            self.unmap()


def reserve(device: torch.device, size: int) -> MappedMemory | None:
    """Return memory that can be given back, or None where this GPU or its driver cannot do it."""
    try:
        return MappedMemory(device, size)
    except Exception:  # whatever it is, ordinary memory will do
        return None
