/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti-library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define NEWEST_MAJOR 13
#define OLDEST_MAJOR 12

struct here {
    bool driver;
    char runtime[PATH_MAX]; /* "" none */
};

/* Names only: dlopen inside the iteration could wait for its lock. */
static int note_name(struct dl_phdr_info *info, size_t size, void *data)
{
    struct here *here = data;
    const char *path = info->dlpi_name ? info->dlpi_name : "", *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    if (strncmp(base, "libcuda.so", 10) == 0)
        here->driver = true;
    if (strncmp(base, "libcudart", 9) == 0 && !here->runtime[0])
        snprintf(here->runtime, sizeof(here->runtime), "%s", path);
    return 0;
}

static struct here look_around(void)
{
    struct here here = {false, ""};
    dl_iterate_phdr(note_name, &here);
    return here;
}

bool rs_cupti_is_cuda_here(void)
{
    struct here here = look_around();
    return here.driver || here.runtime[0];
}

static void *open_in(const char *folder, size_t length, const char *below, int major)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%.*s%slibcupti.so.%d", (int)length, folder, below, major);
    return n > 0 && (size_t)n < sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Toolkit (old and new layout), and the packages of PyPI: one for each library, or one for all. */
static void *open_beside(const char *runtime, int major)
{
    static const char *const below[] = {"/", "/../extras/CUPTI/lib64/", "/../../cuda_cupti/lib/"};
    const char *slash = strrchr(runtime, '/');
    void *handle = NULL;
    for (size_t i = 0; slash && !handle && i < sizeof(below) / sizeof(*below); i++)
        handle = open_in(runtime, (size_t)(slash - runtime), below[i], major);
    return handle;
}

static void *open_major(const struct here *here, int major)
{
    static const char *const folders[] = {"/usr/local/cuda/extras/CUPTI/lib64/",
                                          "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
    char name[32];
    snprintf(name, sizeof(name), "libcupti.so.%d", major);
    void *handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (!handle)
        handle = open_beside(here->runtime, major);
    if (!handle)
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !handle && i < sizeof(folders) / sizeof(*folders); i++)
        handle = open_in(folders[i], strlen(folders[i]), "", major);
    return handle;
}

/* The major version that the runtime's name ends with, 0 unknown. */
static int major_of(const char *runtime)
{
    int major = 0;
    const char *so = strstr(runtime, ".so.");
    return so && sscanf(so, ".so.%d", &major) == 1 ? major : 0;
}

static void *open_any(void)
{
    struct here here = look_around();
    int first = major_of(here.runtime);
    void *handle = first >= OLDEST_MAJOR ? open_major(&here, first) : NULL;
    for (int major = NEWEST_MAJOR; !handle && major >= OLDEST_MAJOR; major--)
        handle = major != first ? open_major(&here, major) : NULL;
    return handle;
}

static const char *find_functions(struct rs_cupti *c, void *handle)
{
    const char *missing = NULL;
#define FIND(name, parameters, needed)                                                             \
    c->name = (int(*) parameters)dlsym(handle, "cupti" #name);                                     \
    if (needed && !c->name)                                                                        \
        missing = "cupti" #name;
    RS_CUPTI_FUNCTIONS(FIND)
#undef FIND
    return missing;
}

const char *rs_cupti_open(struct rs_cupti *ret, char *why, size_t why_size)
{
    void *handle = open_any();
    Dl_info info;
    if (!handle)
        return "no libcupti.so.13 or .12 was found beside the program's CUDA, by LD_LIBRARY_PATH, "
               "or in /usr/local/cuda";
    const char *missing = find_functions(ret, handle);
    if (dladdr((const void *)dlsym(handle, "cuptiGetVersion"), &info) && info.dli_fname)
        snprintf(ret->path, sizeof(ret->path), "%s", info.dli_fname);
    if (missing) {
        snprintf(why, why_size, "%s lacks %s", ret->path, missing);
        return why;
    }
    if (ret->GetVersion(&ret->version) != RS_CUPTI_SUCCESS)
        ret->version = 0;
    if (ret->version < RS_CUPTI_OLDEST || ret->version > RS_CUPTI_NEWEST) {
        snprintf(why, why_size,
                 "%s is version %u of CUPTI's interface; %u (CUDA 12.0) to %u are "
                 "known",
                 ret->path, ret->version, RS_CUPTI_OLDEST, RS_CUPTI_NEWEST);
        return why;
    }
    return NULL;
}
