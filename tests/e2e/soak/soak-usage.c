/* SPDX-License-Identifier: Apache-2.0 */
#include "soak-usage.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What is more than that has grown: the grain of allocator and kernel. In a short run caches and
 * pools still fill. */
#define SHORT_NS 60000000000u
static const uint64_t allowed[SOAK_QUANTITIES] = {
    [SOAK_HEAP_BYTES] = 256 << 10, [SOAK_PSS_BYTES] = 8 << 20};
static const uint64_t allowed_in_short[SOAK_QUANTITIES] = {
    [SOAK_HEAP_BYTES] = 2 << 20, [SOAK_PSS_BYTES] = 8 << 20};

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t entries(const char *folder)
{
    uint64_t n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static uint64_t pss_bytes(void)
{
    char line[256];
    unsigned long long kilobytes = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Pss: %llu kB", &kilobytes) == 1)
            break;
    if (f)
        fclose(f);
    return kilobytes << 10;
}

static void measure(uint64_t ret[SOAK_QUANTITIES])
{
    struct mallinfo2 heap = mallinfo2();
    ret[SOAK_HEAP_BYTES] = heap.uordblks + heap.hblkhd;
    ret[SOAK_PSS_BYTES] = pss_bytes();
    ret[SOAK_DESCRIPTORS] = entries("/proc/self/fd");
    ret[SOAK_THREADS] = entries("/proc/self/task");
}

void soak_begin(struct soak *s, double seconds)
{
    *s = (struct soak){.begin_ns = now_ns(), .length_ns = (uint64_t)(seconds * 1e9)};
    memset(s->least, 0xff, sizeof s->least);
}

bool soak_round(struct soak *s)
{
    uint64_t now[SOAK_QUANTITIES], passed_ns = now_ns() - s->begin_ns;
    uint64_t fifth = passed_ns * 5 / (s->length_ns + 1);
    s->rounds++;
    if (fifth == 1 || fifth >= 4) {
        measure(now);
        s->seen[fifth >= 4]++;
        for (int q = 0; q < SOAK_QUANTITIES; q++)
            if (now[q] < s->least[fifth >= 4][q])
                s->least[fifth >= 4][q] = now[q];
    }
    return passed_ns >= s->length_ns;
}

bool soak_end(const struct soak *s, const char *who, int rank)
{
    bool flat = s->seen[0] > 0 && s->seen[1] > 0;
    const uint64_t *a = s->least[0], *b = s->least[1];
    for (int q = 0; q < SOAK_QUANTITIES; q++)
        flat &= b[q] <= a[q] + (s->length_ns < SHORT_NS ? allowed_in_short : allowed)[q];
    printf("%s rank %d: %llu rounds; heap %llu -> %llu bytes, Pss %llu -> %llu KiB, "
           "descriptors %llu -> %llu, threads %llu -> %llu: %s\n",
           who, rank, (unsigned long long)s->rounds, (unsigned long long)a[SOAK_HEAP_BYTES],
           (unsigned long long)b[SOAK_HEAP_BYTES], (unsigned long long)a[SOAK_PSS_BYTES] >> 10,
           (unsigned long long)b[SOAK_PSS_BYTES] >> 10, (unsigned long long)a[SOAK_DESCRIPTORS],
           (unsigned long long)b[SOAK_DESCRIPTORS], (unsigned long long)a[SOAK_THREADS],
           (unsigned long long)b[SOAK_THREADS],
           flat                                 ? "flat"
           : s->seen[0] == 0 || s->seen[1] == 0 ? "too short to tell"
                                                : "GROWN");
    fflush(stdout);
    return flat;
}

uint32_t soak_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = (uint32_t)(*state >> 32);
    return x ^ (x >> 15);
}
