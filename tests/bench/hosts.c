/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce over hosts that a link joins: flat ring against hierarchical ones, and the bytes that
 * each puts on the link. bench-hosts.sh makes the hosts and starts it:
 *
 *     mpirun ... bench-hosts DEVICE [ROUNDS [SMALLEST]]
 *
 * Float, sum, in place; between hosts by MPI's messages, inside by shared memory. For each size the
 * contenders take turns, round by round; a round's time is that of the slowest rank. Bytes are
 * those that the host's DEVICE has sent, of the host that sent most. Every result is checked. Lines
 * with RATIO and bar come last; status 1: one was missed, 2: nothing was measured or a sum was
 * wrong.
 */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "rt-transport-mpi.h"
#include "rt-transport-shm.h"

enum { ROUNDS_MAX = 51, CONTENDERS_MAX = 16, LARGEST_BYTES = 16 << 20 };

struct contender {
    const char *name;
    rt_allreduce_fn *fn;
    bool over_hosts; /* hierarchical, with `fn` between hosts (NULL: two-level ring) */
};

static const struct contender contenders[] = {
    {"ring", rt_allreduce_ring, false},
    {"recursive-doubling", rt_allreduce_recursive_doubling, false},
    {"hierarchical:auto", rt_allreduce, true},
    {"hierarchical:ring", rt_allreduce_ring, true},
    {"hierarchical:recursive-doubling", rt_allreduce_recursive_doubling, true},
    {"two-level-ring", NULL, true},
};
enum { FLAT_RING = 0, HIERARCHICAL = 2, CONTENDERS = sizeof contenders / sizeof *contenders };

static struct {
    int rank, size;
    const char *device;
    struct rt_transport *all;
    struct rt_transport_shm inside;
    struct rt_layout layout;
    float *data;
} self;

static void fail(const char *text)
{
    fprintf(stderr, "bench-hosts: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* ---- hosts ---- */

/* Hosts by their names: the lowest rank of the same. */
static void find_layout(void)
{
    char mine[64] = "", (*all)[64] = calloc((size_t)self.size, sizeof *all);
    int *number = calloc((size_t)self.size, sizeof *number);
    gethostname(mine, sizeof mine - 1);
    MPI_Allgather(mine, sizeof mine, MPI_CHAR, all, sizeof mine, MPI_CHAR, MPI_COMM_WORLD);
    for (int r = 0; r < self.size; r++)
        while (strcmp(all[number[r]], all[r]) != 0)
            number[r]++;
    if (rt_layout_init(&self.layout, number, self.size) != 0)
        fail("no layout");
    free(all);
    free(number);
}

/* Ranks of a host share a file without a name, opened through its maker's descriptor. */
static void connect_inside(void)
{
    const int host = self.layout.host[self.rank], local = self.layout.local[self.rank];
    const int size = rt_layout_local_size(&self.layout, host);
    const uint64_t bytes = rt_shm_bytes(size);
    int name[2] = {(int)getpid(), -1};
    char path[64];
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, host, self.rank, &comm);
    if (local == 0) {
        name[1] = memfd_create("bench-hosts", MFD_CLOEXEC);
        if (ftruncate(name[1], (off_t)bytes) != 0)
            fail("ftruncate");
    }
    MPI_Bcast(name, 2, MPI_INT, 0, comm);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name[0], name[1]);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || region == MAP_FAILED ||
        rt_transport_shm_init(&self.inside, region, local, size) != 0)
        fail("no shared memory");
    close(fd);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

/* Bytes that this host's device has sent so far. */
static double sent_bytes(void)
{
    char line[512], name[64];
    double sent = -1;
    FILE *f = fopen("/proc/net/dev", "r");
    while (f && fgets(line, sizeof line, f)) {
        double read;
        if (sscanf(line, " %63[^:]: %*s %*s %*s %*s %*s %*s %*s %*s %lf", name, &read) == 2 &&
            strcmp(name, self.device) == 0)
            sent = read;
    }
    if (f)
        fclose(f);
    if (sent < 0)
        fail("the device isn't in /proc/net/dev");
    return sent;
}

/* ---- a round ---- */

static float value(uint64_t i, int rank)
{
    return (float)((i * 31 + (uint64_t)rank * 7) % 1021 + 1);
}

static void reduce_once(const struct contender *c, uint64_t count)
{
    const struct rt_hosts hosts = {self.all, &self.inside.base, &self.layout};
    int error;
    if (!c->over_hosts)
        error = c->fn(self.all, self.data, self.data, count, RT_FLOAT32, RT_SUM);
    else if (c->fn)
        error = rt_allreduce_hierarchical(&hosts, c->fn, self.data, self.data, count, RT_FLOAT32,
                                          RT_SUM);
    else
        error =
            rt_allreduce_two_level_ring(&hosts, self.data, self.data, count, RT_FLOAT32, RT_SUM);
    if (error)
        fail("an allreduce failed");
}

static void check(uint64_t count, unsigned times)
{
    const double factor = pow(self.size, times - 1);
    for (uint64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int r = 0; r < self.size; r++)
            sum += (double)value(i, r);
        if (!(fabs(self.data[i] / factor - sum) <= 1e-4 * sum))
            fail("a wrong sum");
    }
}

/* Seconds, and bytes of the host that sent most, of one allreduce. */
static double one_round(const struct contender *c, uint64_t count, double *ret_bytes)
{
    const unsigned times = count * sizeof(float) < 1u << 20 ? 10 : 1;
    for (uint64_t i = 0; i < count; i++)
        self.data[i] = value(i, self.rank);
    reduce_once(c, count > 16 ? 16 : count); /* connections are there */
    for (uint64_t i = 0; i < 16 && i < count; i++)
        self.data[i] = value(i, self.rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double before = sent_bytes(), begin = bench_seconds();
    for (unsigned i = 0; i < times; i++)
        reduce_once(c, count);
    double mine[2] = {(bench_seconds() - begin) / times, 0}, most[2];
    MPI_Barrier(MPI_COMM_WORLD);
    mine[1] = (sent_bytes() - before) / times;
    check(count, times);
    MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *ret_bytes = most[1];
    return most[0];
}

struct measured {
    double seconds[CONTENDERS], bytes[CONTENDERS]; /* medians */
    double speedup; /* of hierarchical over the flat ring: median of the rounds' ratios */
};

static struct measured one_size(uint64_t bytes, unsigned rounds)
{
    static double seconds[CONTENDERS][ROUNDS_MAX], sent[CONTENDERS][ROUNDS_MAX];
    double ratio[ROUNDS_MAX];
    struct measured m;
    for (unsigned r = 0; r < rounds; r++) {
        for (int i = 0; i < CONTENDERS; i++)
            seconds[i][r] = one_round(&contenders[i], bytes / sizeof(float), &sent[i][r]);
        ratio[r] = seconds[FLAT_RING][r] / seconds[HIERARCHICAL][r];
    }
    m.speedup = bench_median(ratio, rounds);
    for (int i = 0; i < CONTENDERS; i++) {
        m.seconds[i] = bench_median(seconds[i], rounds);
        m.bytes[i] = bench_median(sent[i], rounds);
        if (self.rank == 0)
            printf("%10llu %-32s %10.3f ms %12.0f bytes\n", (unsigned long long)bytes,
                   contenders[i].name, m.seconds[i] * 1e3, m.bytes[i]);
    }
    fflush(stdout);
    return m;
}

static int judge(const struct measured *m)
{
    const double hosts = self.layout.host_count;
    const double fewest = 2 * (hosts - 1) / hosts * LARGEST_BYTES;
    char what[160];
    int missed = 0;
    snprintf(what, sizeof what, "%d ranks on %d hosts, flat ring over %s, 16 MiB", self.size,
             self.layout.host_count, contenders[HIERARCHICAL].name);
    missed |= bench_judge(what, m->speedup, ">=", 1.5);
    snprintf(what, sizeof what, "bytes on the link over the fewest, %s, 16 MiB",
             contenders[HIERARCHICAL].name);
    missed |= bench_judge(what, m->bytes[HIERARCHICAL] / fewest, "<=", 1.1);
    return missed;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 5, missed = 0;
    const uint64_t smallest = argc > 3 ? strtoull(argv[3], NULL, 10) : 16 << 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.size);
    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX)
        fail("usage: bench-hosts DEVICE [ROUNDS [SMALLEST]]");
    self.device = argv[1];
    find_layout();
    if (self.layout.host_count < 2)
        fail("needs two hosts or more");
    connect_inside();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    self.all = rt_transport_mpi_new(&comm, 0, NULL, 0);
    self.data = rt_alloc(LARGEST_BYTES);
    if (!self.all || !self.data)
        fail("no memory");
    for (uint64_t bytes = smallest; bytes <= LARGEST_BYTES; bytes *= 32) {
        struct measured m = one_size(bytes, (unsigned)rounds);
        if (bytes == LARGEST_BYTES && self.rank == 0)
            missed = judge(&m);
    }
    MPI_Bcast(&missed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    rt_transport_shm_release(&self.inside);
    rt_transport_mpi_free(self.all);
    rt_layout_release(&self.layout);
    rt_free(self.data);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return missed;
}
