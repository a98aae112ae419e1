/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Facts of the interface: numbers of tables, modules and functions. */
enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3 };
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { CORE_PUSH = 9, CORE_POP = 11, CORE_NAME_THREAD = 14, CORE_COUNT = 16 };
enum {
    CORE2_START = 2,
    CORE2_END = 3,
    CORE2_NAME_CATEGORY = 8,
    CORE2_DOMAIN_CREATE = 12,
    CORE2_DOMAIN_DESTROY = 14,
    CORE2_COUNT = 16
};
#define NVTX_VERSION  3
#define MESSAGE_ASCII 1

struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};
_Static_assert(sizeof(struct attributes) == 48 && offsetof(struct attributes, message) == 40,
               "layout of the interface's event attributes");

typedef void (*function)(void);
struct callbacks_table {
    size_t size;
    int (*functions)(int module, function ***ret_table, unsigned *ret_count);
};
struct version_table {
    size_t size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};

/* The tool writes its functions here, through the tables of pointers below. */
static function core[CORE_COUNT], core2[CORE2_COUNT];
static function *core_slots[CORE_COUNT + 1], *core2_slots[CORE2_COUNT + 1];

static int module_functions(int module, function ***ret_table, unsigned *ret_count)
{
    if (module != MODULE_CORE && module != MODULE_CORE2)
        return 0;
    if (ret_table)
        *ret_table = module == MODULE_CORE ? core_slots : core2_slots;
    if (ret_count)
        *ret_count = module == MODULE_CORE ? CORE_COUNT : CORE2_COUNT;
    return 1;
}

static void ignore_tool_version(uint32_t version)
{
    (void)version;
}

static const void *export_table(uint32_t table)
{
    static const struct callbacks_table callbacks = {sizeof callbacks, module_functions};
    static const struct version_table version = {sizeof version, NVTX_VERSION, 0,
                                                 ignore_tool_version};
    if (table == TABLE_CALLBACKS)
        return &callbacks;
    return table == TABLE_VERSION ? &version : NULL;
}

static void attach(void)
{
    for (int i = 1; i < CORE_COUNT; i++)
        core_slots[i] = &core[i];
    for (int i = 1; i < CORE2_COUNT; i++)
        core2_slots[i] = &core2[i];
    const char *path = secure_getenv("NVTX_INJECTION64_PATH");
    void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*initialize)(const void *(*)(uint32_t)) = NULL;
    if (tool)
        *(void **)&initialize = dlsym(tool, "InitializeInjectionNvtx2");
    if (initialize && initialize(export_table))
        return;
    memset(core, 0, sizeof core);
    memset(core2, 0, sizeof core2);
}

static void attach_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach);
}

void rt_nvtx_push(const char *name)
{
    attach_once();
    if (core[CORE_PUSH])
        ((int (*)(const char *))core[CORE_PUSH])(name);
}

void rt_nvtx_pop(void)
{
    attach_once();
    if (core[CORE_POP])
        ((int (*)(void))core[CORE_POP])();
}

void rt_nvtx_name_thread(const char *name)
{
    attach_once();
    if (core[CORE_NAME_THREAD])
        ((void (*)(uint32_t, const char *))core[CORE_NAME_THREAD])((uint32_t)syscall(SYS_gettid),
                                                                   name);
}

struct category {
    uint32_t number;
    char name[];
};

struct rt_nvtx_domain {
    void *handle;
    pthread_mutex_t lock; /* of the two below */
    void *categories;     /* a tree of <search.h> */
    uint32_t count;
};

struct rt_nvtx_domain *rt_nvtx_domain_new(const char *name)
{
    attach_once();
    if (!core2[CORE2_DOMAIN_CREATE] || !core2[CORE2_START] || !core2[CORE2_END])
        return NULL;
    struct rt_nvtx_domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return NULL;
    pthread_mutex_init(&domain->lock, NULL);
    domain->handle = ((void *(*)(const char *))core2[CORE2_DOMAIN_CREATE])(name);
    return domain;
}

void rt_nvtx_domain_free(struct rt_nvtx_domain *domain)
{
    if (!domain)
        return;
    if (core2[CORE2_DOMAIN_DESTROY])
        ((void (*)(void *))core2[CORE2_DOMAIN_DESTROY])(domain->handle);
    tdestroy(domain->categories, free);
    pthread_mutex_destroy(&domain->lock);
    free(domain);
}

static int compare_categories(const void *a, const void *b)
{
    return strcmp(((const struct category *)a)->name, ((const struct category *)b)->name);
}

static uint32_t find_or_name_category(struct rt_nvtx_domain *domain, struct category *fresh)
{
    void *found = tsearch(fresh, &domain->categories, compare_categories);
    struct category *category = found ? *(struct category **)found : NULL;
    if (category != fresh) {
        free(fresh);
        return category ? category->number : 0;
    }
    fresh->number = ++domain->count;
    if (core2[CORE2_NAME_CATEGORY])
        ((void (*)(void *, uint32_t, const char *))core2[CORE2_NAME_CATEGORY])(
            domain->handle, fresh->number, fresh->name);
    return fresh->number;
}

uint32_t rt_nvtx_category(struct rt_nvtx_domain *domain, const char *name)
{
    if (!domain)
        return 0;
    struct category *fresh = malloc(sizeof *fresh + strlen(name) + 1);
    if (!fresh)
        return 0;
    strcpy(fresh->name, name);
    pthread_mutex_lock(&domain->lock);
    uint32_t number = find_or_name_category(domain, fresh);
    pthread_mutex_unlock(&domain->lock);
    return number;
}

uint64_t rt_nvtx_start(struct rt_nvtx_domain *domain, const char *message, uint32_t category)
{
    if (!domain)
        return 0;
    const struct attributes attributes = {
        .version = NVTX_VERSION,
        .size = sizeof attributes,
        .category = category,
        .message_type = MESSAGE_ASCII,
        .message = message,
    };
    return ((uint64_t(*)(void *, const struct attributes *))core2[CORE2_START])(domain->handle,
                                                                                &attributes);
}

void rt_nvtx_end(struct rt_nvtx_domain *domain, uint64_t range)
{
    if (domain && range)
        ((void (*)(void *, uint64_t))core2[CORE2_END])(domain->handle, range);
}
