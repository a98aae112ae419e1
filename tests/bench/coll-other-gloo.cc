// SPDX-License-Identifier: Apache-2.0
// Gloo's allreduce by TCP over loopback, its only transport between processes of a host; ranks meet
// in a folder of their own.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <stdlib.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "coll-other.h"

const char *const other_name = "Gloo";

static std::shared_ptr<gloo::rendezvous::Context> context;
static std::string folder;
static int self;

static void connect(int rank, int size)
{
    char name[64] = "/tmp/coll-gloo-XXXXXX";
    if (rank == 0 && !mkdtemp(name))
        throw std::runtime_error("no folder in /tmp");
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    folder = name;
    self = rank;
    gloo::transport::tcp::attr attr;
    attr.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(folder);
    context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);
}

void other_begin(int rank, int size)
{
    try {
        connect(rank, size);
    } catch (const std::exception &e) {
        std::cerr << "gloo: " << e.what() << std::endl;
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

void other_allreduce(float *data, uint64_t count)
{
    gloo::AllreduceOptions options(context);
    options.setOutput(data, count);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
}

void other_end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    context.reset();
    if (self == 0 && system(("rm -r " + folder).c_str()) != 0)
        std::cerr << "gloo: can't remove " << folder << std::endl;
}
