/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profiler for the NVTX client's test: loaded through NVTX_INJECTION64_PATH, writes a line for
 * each call into nvtx_tool_log.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

char nvtx_tool_log[8192];
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

#define SAY(...)                                                                                   \
    snprintf(nvtx_tool_log + strlen(nvtx_tool_log), sizeof nvtx_tool_log - strlen(nvtx_tool_log),  \
             __VA_ARGS__)

static int push(const char *name)
{
    SAY("push %s\n", name);
    return 0;
}
static int pop(void)
{
    SAY("pop\n");
    return 0;
}
static char domains[4][32];
static void *domain_create(const char *name)
{
    static int n;
    SAY("domain %s\n", name);
    return strcpy(domains[n++], name);
}
static void domain_destroy(void *domain)
{
    SAY("destroy %s\n", (char *)domain);
}
static void name_category(void *domain, uint32_t number, const char *name)
{
    SAY("category %s %u %s\n", (char *)domain, number, name);
}

/* The fields that the client fills, where the interface has them. */
static uint64_t start(void *domain, const void *attributes)
{
    static uint64_t id = 0x100000000u; /* ids don't fit 32 bits */
    const uint16_t *halves = attributes;
    const uint32_t *words = attributes;
    const char *message;
    memcpy(&message, (const char *)attributes + 40, sizeof message);
    SAY("start %s version %u size %u category %u type %u %s\n", (char *)domain, halves[0],
        halves[1], words[1], words[8], message);
    return ++id;
}
static void end(void *domain, uint64_t id)
{
    SAY("end %s %llu\n", (char *)domain, (unsigned long long)(id - 0x100000000u));
}

typedef void (*function)(void);

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
    const struct {
        size_t size;
        int (*functions)(int module, function ***table, unsigned *count);
    } *callbacks = export_table(1);
    const struct {
        size_t size;
        uint32_t version;
    } *version = export_table(3);
    function **core, **core2;
    unsigned core_count, core2_count;
    if (!callbacks->functions(1, &core, &core_count) ||
        !callbacks->functions(5, &core2, &core2_count) || callbacks->functions(2, &core, NULL) ||
        export_table(2))
        return 0;
    SAY("version %u core %u core2 %u\n", version->version, core_count, core2_count);
    *core[9] = (function)push;
    *core[11] = (function)pop;
    *core2[2] = (function)start;
    *core2[3] = (function)end;
    *core2[8] = (function)name_category;
    *core2[12] = (function)domain_create;
    *core2[14] = (function)domain_destroy;
    return 1;
}
