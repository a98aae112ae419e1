// SPDX-License-Identifier: Apache-2.0
// Every operation of Gloo on some ranks that meet in a folder: run(RANK, SIZE, FOLDER, WHAT), from the
// program it is linked to, or from one that loads it locally. Each call that goes well is a line
// "call CONTEXT TAG OPERATION ELEMENTS BYTES-EACH ROOT", each that does not "failed ...", then come
// results. WHAT: "all", or "late" (rank 1 comes late to each of many allreduces).
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_ring.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gloo-part.h"

using Shared = std::shared_ptr<gloo::rendezvous::Context>;

static int rank, size;
static std::mutex output;

static void say(const char *what, const char *context, unsigned tag, const char *name, size_t n,
                size_t each, int root)
{
    std::lock_guard<std::mutex> lock(output);
    printf("%s %s %u %s %zu %zu %d\n", what, context, tag, name, n, each, root);
}

static Shared connect(const std::string &folder, const char *name, int own, int ranks)
{
    gloo::transport::tcp::attr attr;
    attr.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore files(folder);
    gloo::rendezvous::PrefixStore store(name, files);
    auto context = std::make_shared<gloo::rendezvous::Context>(own, ranks);
    context->connectFullMesh(store, device);
    return context;
}

template <typename T> static std::vector<T> filled(size_t n)
{
    std::vector<T> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = static_cast<T>(i % 7 + static_cast<size_t>(rank));
    return v;
}

template <typename T> static void print(const char *name, const std::vector<T> &v)
{
    double sum = 0;
    for (size_t i = 0; i < v.size(); i++)
        sum += static_cast<double>(v[i]) * static_cast<double>(i + 1);
    printf("result %s %.0f\n", name, sum);
}

template <typename T>
static void allreduce(const Shared &c, const char *name, unsigned tag, size_t n, bool shown = true)
{
    auto v = filled<T>(n);
    gloo::AllreduceOptions o(c);
    o.setOutput(v.data(), n);
    o.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<T>));
    o.setTag(tag);
    gloo::allreduce(o);
    say("call", name, tag, "gloo_allreduce", n, sizeof(T), -1);
    if (shown)
        print("allreduce", v);
}

static void broadcast_and_reduce(const Shared &c)
{
    auto v = filled<int>(100), w = filled<int>(60);
    gloo::BroadcastOptions b(c);
    b.setOutput(v.data(), v.size());
    b.setRoot(size - 1);
    gloo::broadcast(b);
    say("call", "world", 0, "gloo_broadcast", v.size(), 4, size - 1);
    print("broadcast", v);
    gloo::ReduceOptions r(c);
    std::vector<int> out(60);
    r.setInput(w.data(), w.size());
    r.setOutput(out.data(), out.size());
    r.setRoot(1);
    r.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<int>));
    gloo::reduce(r);
    say("call", "world", 0, "gloo_reduce", w.size(), 4, 1);
    if (rank == 1)
        print("reduce", out);
}

static void gathers(const Shared &c)
{
    auto n = static_cast<size_t>(size), own = static_cast<size_t>(rank);
    auto v = filled<uint8_t>(33);
    std::vector<uint8_t> all(33 * n);
    gloo::AllgatherOptions a(c);
    a.setInput(v.data(), v.size());
    a.setOutput(all.data(), all.size());
    gloo::allgather(a);
    say("call", "world", 0, "gloo_allgather", v.size(), 1, -1);
    print("allgather", all);

    std::vector<size_t> counts(n);
    for (size_t i = 0; i < n; i++)
        counts[i] = 5 * (i + 1);
    auto mine = filled<double>(counts[own]);
    std::vector<double> parts(5 * n * (n + 1) / 2);
    gloo::AllgathervOptions av(c);
    av.setInput(mine.data(), mine.size());
    av.setOutput(parts.data(), counts);
    gloo::allgatherv(av);
    say("call", "world", 0, "gloo_allgatherv", mine.size(), 8, -1);
    print("allgatherv", parts);

    gloo::GatherOptions g(c);
    g.setInput(v.data(), v.size());
    if (rank == 0)
        g.setOutput(all.data(), all.size());
    g.setRoot(0);
    gloo::gather(g);
    say("call", "world", 0, "gloo_gather", v.size(), 1, 0);

    std::vector<std::vector<short>> from(n, filled<short>(21));
    std::vector<short *> pointers;
    for (auto &f : from)
        pointers.push_back(f.data());
    std::vector<short> to(21);
    gloo::ScatterOptions s(c);
    if (rank == 1)
        s.setInputs(pointers, 21);
    s.setOutput(to.data(), 21);
    s.setRoot(1);
    gloo::scatter(s);
    say("call", "world", 0, "gloo_scatter", to.size(), 2, 1);
    print("scatter", to);
}

static void alltoalls(const Shared &c)
{
    auto n = static_cast<size_t>(size);
    auto v = filled<int>(11 * n);
    std::vector<int> out(11 * n);
    gloo::AlltoallOptions a(c);
    a.setInput(v.data(), v.size());
    a.setOutput(out.data(), out.size());
    gloo::alltoall(a);
    say("call", "world", 0, "gloo_alltoall", 11, 4, -1);
    print("alltoall", out);

    std::vector<int64_t> give(n, rank + 1), get(n);
    for (size_t i = 0; i < n; i++)
        get[i] = static_cast<int64_t>(i) + 1;
    auto w = filled<float>(n * (static_cast<size_t>(rank) + 1));
    std::vector<float> got(n * (n + 1) / 2);
    gloo::AlltoallvOptions av(c);
    av.setInput(w.data(), give);
    av.setOutput(got.data(), get);
    gloo::alltoallv(av);
    say("call", "world", 0, "gloo_alltoallv", w.size(), 4, -1);
    print("alltoallv", got);
}

static void barrier(const Shared &c, const char *name)
{
    gloo::BarrierOptions o(c);
    gloo::barrier(o);
    say("call", name, 0, "gloo_barrier", 0, 0, -1);
}

// Options that are used again.
static void again(const Shared &c)
{
    auto v = filled<float>(64);
    gloo::AllreduceOptions o(c);
    o.setOutput(v.data(), v.size());
    o.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    for (int i = 0; i < 60; i++) {
        gloo::allreduce(o);
        say("call", "world", 0, "gloo_allreduce", v.size(), 4, -1);
    }
}

// As torch does it: a tag is a number, and two threads make the calls, in an order of each rank's own.
static void as_torch(const Shared &c)
{
    const unsigned rounds = 20;
    std::atomic<unsigned> before{0}, done{0};
    auto even = [&] {
        for (unsigned i = 0; i < rounds; i++) {
            while (rank % 2 == 1 && done < i + 1)
                std::this_thread::yield();
            before = i + 1;
            allreduce<float>(c, "torch", 2 * i, 100 + i, false);
        }
    };
    auto odd = [&] {
        for (unsigned i = 0; i < rounds; i++) {
            while (rank % 2 == 0 && before < i + 1)
                std::this_thread::yield();
            allreduce<double>(c, "torch", 2 * i + 1, 500 + i, false);
            done = i + 1;
        }
    };
    std::thread a(even), b(odd);
    a.join();
    b.join();
}

// An exception leaves the call: rank 0 waits alone.
static void fails(const Shared &c)
{
    if (rank == 0) {
        int v = 1;
        gloo::AllreduceOptions o(c);
        o.setOutput(&v, 1);
        o.setReduceFunction(
            static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<int>));
        o.setTimeout(std::chrono::milliseconds(100));
        try {
            gloo::allreduce(o);
        } catch (const gloo::IoException &) {
            say("failed", "broken", 0, "gloo_allreduce", 1, 4, -1);
        }
    }
}

static void algorithm(const Shared &c)
{
    auto v = filled<float>(50);
    gloo::AllreduceRing<float> ring(c, {v.data()}, 50);
    ring.run();
    print("algorithm", v);
}

static void all(const std::string &folder)
{
    Shared world = connect(folder, "world", rank, size);
    Shared broken = connect(folder, "broken", rank, size);
    Shared torch = connect(folder, "torch", rank, size);
    Shared pair =
        connect(folder, rank < size / 2 ? "low" : "high", rank % (size / 2), size / 2);
    barrier(world, "world");
    allreduce<float>(world, "world", 0, 1000);
    broadcast_and_reduce(world);
    gathers(world);
    alltoalls(world);
    as_torch(torch);
    allreduce<double>(pair, rank < size / 2 ? "low" : "high", 0,
                      static_cast<size_t>(rank < size / 2 ? 10 : 20));
    fails(broken);
    barrier(world, "world");
    again(world);
    algorithm(world);
}

static void late(const std::string &folder)
{
    Shared world = connect(folder, "world", rank, size);
    for (int i = 0; i < 30; i++) {
        if (rank == 1) // what it is late with; the others only wait
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
        allreduce<float>(world, "world", static_cast<unsigned>(i), 4096, false);
    }
}

int run(int own, int ranks, const char *folder, const char *what)
{
    rank = own;
    size = ranks;
    try {
        std::string(what) == "late" ? late(folder) : all(folder);
    } catch (const std::exception &e) {
        fprintf(stderr, "rank %d: %s\n", rank, e.what());
        return 1;
    }
    return 0;
}
