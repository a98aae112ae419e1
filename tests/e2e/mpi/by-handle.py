# SPDX-License-Identifier: Apache-2.0
"""Communicates by MPI through a handle of the library alone, as a program with a foreign-function
interface may: by-handle.py FLAVOUR LIBRARY"""
import ctypes
import sys

flavour, path = sys.argv[1:]
mpi = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)  # Open MPI's components look for it there
mpi.MPI_Init(None, None)
if flavour == 'openmpi':
    world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, 'ompi_mpi_comm_world')))
else:
    world = ctypes.c_int(0x44000000)
faults = mpi.MPI_Barrier(world)
mpi.MPI_Finalize()
sys.exit(faults)
