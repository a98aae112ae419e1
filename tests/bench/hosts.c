/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce over hosts that a link joins: flat ring against hierarchical ones, and the bytes that
 * each puts on the link. bench-hosts.sh makes the hosts and starts it:
 *
 *     mpirun ... bench-hosts DEVICE RATE [ROUNDS [SMALLEST]]
 *
 * Float, sum, in place; between hosts by MPI's messages, inside by shared memory. For each size the
 * contenders take turns, round by round; a round's time is that of the slowest rank. Bytes are
 * those that the host's DEVICE has sent, of the host that sent most; RATE (1gbit, 200mbit) is what
 * it can send, and "link" the share of it that was used. Every result is checked. Lines with RATIO
 * and bar come last; status 1: one was missed, 2: nothing was measured or a sum was wrong.
 *
 * The flat ring to beat goes round one host after the other, so that it crosses each link once
 * (1.5 S on it, of 2 hosts of 2 ranks). "ring, in turn" is the one of ranks that were laid on the
 * hosts in turn (3 S).
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
    enum { BY_HOST, IN_TURN, OVER_HOSTS } way; /* the last: `fn` between hosts (NULL: two-level) */
};

static const struct contender contenders[] = {
    {"ring, by host", rt_allreduce_ring, BY_HOST},
    {"hierarchical:auto", rt_allreduce, OVER_HOSTS},
    {"ring, in turn", rt_allreduce_ring, IN_TURN},
    {"recursive-doubling, by host", rt_allreduce_recursive_doubling, BY_HOST},
    {"hierarchical:ring", rt_allreduce_ring, OVER_HOSTS},
    {"hierarchical:recursive-doubling", rt_allreduce_recursive_doubling, OVER_HOSTS},
    {"two-level-ring", NULL, OVER_HOSTS},
};
enum { FLAT_RING, HIERARCHICAL, CONTENDERS = sizeof contenders / sizeof *contenders };

static struct {
    int rank, size;
    const char *device;
    double bytes_per_second; /* the link's */
    struct rt_transport *all, *by_host, *in_turn;
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
    if (c->way != OVER_HOSTS)
        error = c->fn(c->way == BY_HOST ? self.by_host : self.in_turn, self.data, self.data, count,
                      RT_FLOAT32, RT_SUM);
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

/* The device counts long segments with one header, its rate limit one for each frame: 1,514 bytes
 * with 1,448 of data. What the link could send at once after a rest is in it, too. */
static double link_use(double bytes, double seconds)
{
    return bytes * 1514 / 1448 / seconds / self.bytes_per_second;
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
            printf("%10llu %-32s %10.3f ms %12.0f bytes, link %.3f\n", (unsigned long long)bytes,
                   contenders[i].name, m.seconds[i] * 1e3, m.bytes[i],
                   link_use(m.bytes[i], m.seconds[i]));
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
    snprintf(what, sizeof what, "%d ranks on %d hosts, %s, over %s, 16 MiB", self.size,
             self.layout.host_count, contenders[FLAT_RING].name, contenders[HIERARCHICAL].name);
    missed |= bench_judge(what, m->speedup, ">=", 1.5);
    snprintf(what, sizeof what, "bytes on the link over the fewest, %s, 16 MiB",
             contenders[HIERARCHICAL].name);
    missed |= bench_judge(what, m->bytes[HIERARCHICAL] / fewest, "<=", 1.1);
    return missed;
}

/* "1gbit" or "200mbit", in bytes; 0: neither. */
static double read_rate(const char *text)
{
    char *unit;
    double bits = strtod(text, &unit);
    return strcmp(unit, "gbit") == 0   ? bits * 1e9 / 8
           : strcmp(unit, "mbit") == 0 ? bits * 1e6 / 8
                                       : 0;
}

/* All ranks, one host after the other, or one rank of each host in turn. */
static struct rt_transport *connect_all(const MPI_Comm *comm, bool in_turn)
{
    int *ranks = calloc((size_t)self.size, sizeof *ranks), n = 0;
    for (int k = 0; in_turn && k < rt_layout_most(&self.layout); k++)
        for (int h = 0; h < self.layout.host_count; h++)
            if (k < rt_layout_local_size(&self.layout, h))
                ranks[n++] = self.layout.ranks[self.layout.first[h] + k];
    struct rt_transport *t =
        rt_transport_mpi_new(comm, in_turn ? 2 : 1, in_turn ? ranks : self.layout.ranks, self.size);
    free(ranks);
    return t;
}

int main(int argc, char **argv)
{
    int rounds = argc > 3 ? atoi(argv[3]) : 5, missed = 0;
    const uint64_t smallest = argc > 4 ? strtoull(argv[4], NULL, 10) : 64 << 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.size);
    self.bytes_per_second = argc > 2 ? read_rate(argv[2]) : 0;
    if (!(self.bytes_per_second > 0) || rounds < 1 || rounds > ROUNDS_MAX)
        fail("usage: bench-hosts DEVICE RATE [ROUNDS [SMALLEST]], RATE as 1gbit or 200mbit");
    self.device = argv[1];
    find_layout();
    if (self.layout.host_count < 2)
        fail("needs two hosts or more");
    connect_inside();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    self.all = rt_transport_mpi_new(&comm, 0, NULL, 0);
    self.by_host = connect_all(&comm, false);
    self.in_turn = connect_all(&comm, true);
    self.data = rt_alloc(LARGEST_BYTES);
    if (!self.all || !self.by_host || !self.in_turn || !self.data)
        fail("no memory");
    for (uint64_t bytes = smallest; bytes <= LARGEST_BYTES; bytes *= 4) {
        struct measured m = one_size(bytes, (unsigned)rounds);
        if (bytes == LARGEST_BYTES && self.rank == 0)
            missed = judge(&m);
    }
    MPI_Bcast(&missed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    rt_transport_shm_release(&self.inside);
    rt_transport_mpi_free(self.in_turn);
    rt_transport_mpi_free(self.by_host);
    rt_transport_mpi_free(self.all);
    rt_layout_release(&self.layout);
    rt_free(self.data);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return missed;
}
