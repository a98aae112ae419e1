/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome-collective.c - collectives in torch's traces: by the fields of definitions.md section 3,
 * else by the kernel's name, old (ncclKernel_AllReduce_RING_LL_Sum_float) and new
 * (ncclDevKernel_AllReduce_Sum_f32_RING_LL).
 *
 * A process group is known by its name and its members together: ranks that do not share one may
 * use its name for another.
 */
#include "chrome-internal.h"

#include "../coll-names.h"

/* ---- kernels' names ---- */

static gboolean is_word_char(gchar c)
{
    return g_ascii_isalnum(c) || c == '_';
}

/* The identifiers of a kernel's full name, one after the other. */
static gboolean next_identifier(const gchar **at, const gchar *end, const gchar **ret, gsize *ret_n)
{
    const gchar *p = *at;
    while (p < end && !is_word_char(*p))
        p++;
    *ret = p;
    while (p < end && is_word_char(*p))
        p++;
    *ret_n = (gsize)(p - *ret);
    *at = p;
    return *ret_n > 0;
}

static gboolean begins(const gchar *p, gsize n, const gchar *with)
{
    return n >= strlen(with) && memcmp(p, with, strlen(with)) == 0;
}

static gboolean contains(const gchar *p, gsize n, const gchar *what)
{
    return memmem(p, n, what, strlen(what)) != NULL;
}

/* "ncclDevKernel_...", "rcclGenericKernel", and kernels that frameworks bring for small messages.
 */
static gboolean communicates(const gchar *p, gsize n)
{
    static const gchar *const others[] = {
        "cross_device_reduce", "mscclKernel",          "AllReduceKernel",   "all_reduce_kernel",
        "allreduce_kernel",    "AllGatherKernel",      "all_gather_kernel", "allgather_kernel",
        "ReduceScatterKernel", "reduce_scatter_kernel"};
    if ((begins(p, n, "nccl") || begins(p, n, "rccl")) &&
        (contains(p, n, "Kernel") || contains(p, n, "kernel")))
        return TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        if (contains(p, n, others[i]))
            return TRUE;
    return FALSE;
}

static gboolean find_kernel(const gchar *name, gsize n, const gchar **ret, gsize *ret_n)
{
    const gchar *at = name;
    while (next_identifier(&at, name + n, ret, ret_n))
        if (communicates(*ret, *ret_n))
            return TRUE;
    return FALSE;
}

gboolean rs_chrome_is_communication(const gchar *name, gsize n)
{
    const gchar *p;
    return find_kernel(name, n, &p, &n);
}

void rs_chrome_name_kernel(RsChrome *c, RsSig *s)
{
    static const gchar *const ops[] = {"Sum", "Prod", "MinMax", "Max", "Min", "Avg", "PreMulSum"};
    const gchar *name = rs_builder_text(c->b, s->name), *p;
    gsize n;
    if (!find_kernel(name, strlen(name), &p, &n))
        return;
    g_autofree gchar *word = g_strndup(p, n);
    g_auto(GStrv) parts = g_strsplit(word, "_", -1);
    for (guint i = 0; parts[i]; i++) {
        if (i == 1)
            s->coll = (guint8)rs_coll_of_name(parts[i], NULL);
        for (guint k = 0; i > 1 && k < G_N_ELEMENTS(ops); k++)
            if (g_str_equal(parts[i], ops[k]))
                s->redop = rs_builder_string(c->b, ops[k]);
    }
}

/* ---- fields ---- */

/* "_allgather_base", "reduce_scatter_tensor_coalesced": torch's names of one thing. */
static gchar *dup_plain_name(const gchar *name)
{
    static const gchar *const tails[] = {"_coalesced",   "_sparse", "_oop",   "_base",
                                         "_into_tensor", "_tensor", "_single"};
    gchar *plain = g_strdup(*name == '_' ? name + 1 : name);
    for (guint i = 0; i < G_N_ELEMENTS(tails); i++)
        if (g_str_has_suffix(plain, tails[i]))
            plain[strlen(plain) - strlen(tails[i])] = '\0';
    return plain;
}

static guint64 size_of_type(const gchar *name)
{
    static const struct {
        const gchar *name;
        guint bytes;
    } types[] = {
        {"Float", 4},          {"BFloat16", 2}, {"Half", 2},        {"Double", 8},
        {"Byte", 1},           {"Char", 1},     {"Short", 2},       {"Int", 4},
        {"Long", 8},           {"Bool", 1},     {"ComplexHalf", 4}, {"ComplexFloat", 8},
        {"ComplexDouble", 16}, {"UInt16", 2},   {"UInt32", 4},      {"UInt64", 8},
        {"QInt8", 1},          {"QUInt8", 1},   {"QInt32", 4},
    };
    for (guint i = 0; i < G_N_ELEMENTS(types); i++)
        if (g_str_equal(types[i].name, name))
            return types[i].bytes;
    return g_str_has_prefix(name, "Float8") ? 1 : 0;
}

static guint64 number(const RsChrome *c, guint n, const gchar *key)
{
    guint64 v = 0;
    const RsJsonSpan *s = rs_chrome_arg(c, n, key);
    return s && rs_json_u64(s, &v) ? v : 0;
}

/* What a rank passes, and as nccl-tests counts its bytes: definitions.md section 1. */
static void set_size(RsChrome *c, guint n, guint64 members, RsSig *s)
{
    guint64 in = number(c, n, "In msg nelems"), out = number(c, n, "Out msg nelems");
    guint64 size = size_of_type(rs_builder_text(c->b, s->dtype)), all = in;
    s->count = in;
    if (s->coll == RS_COLL_ALLGATHER || s->coll == RS_COLL_GATHER)
        all = in * members;
    else if (s->coll == RS_COLL_REDUCE_SCATTER || s->coll == RS_COLL_SCATTER)
        s->count = out, all = out * members;
    else if (in == 0)
        s->count = all = out;
    if (size == 0 && in) /* a type that is not known: by the message */
        size = number(c, n, "In msg size") / in;
    if (__builtin_mul_overflow(all, size, &s->bytes))
        s->bytes = 0;
    if (s->coll == RS_COLL_BARRIER)
        s->bytes = s->count = 0;
}

/* ---- process groups ---- */

/* "[0, 1, 2]" as text or as an array. FALSE where it is not all there ("[0, 1, ..., 511]"), or
 * holds what can be no rank. */
static gboolean parse_ranks(const gchar *text, GArray *ranks)
{
    g_array_set_size(ranks, 0);
    for (const gchar *p = text; *p;) {
        if (*p == '.')
            return FALSE;
        if (!g_ascii_isdigit(*p)) {
            p++;
            continue;
        }
        gchar *end;
        gint64 v = g_ascii_strtoll(p, &end, 10);
        gint32 rank = (gint32)MIN(v, RS_CHROME_RANKS_MAX);
        if (rank == RS_CHROME_RANKS_MAX)
            return FALSE;
        g_array_append_val(ranks, rank);
        p = end;
    }
    return ranks->len > 0;
}

static gboolean find_members(RsChrome *c, guint n, const gchar *name, guint64 size, GArray *ranks)
{
    const RsJsonSpan *list = rs_chrome_arg(c, n, "Process Group Ranks");
    if (list) {
        rs_json_text(list, c->text);
        if (parse_ranks(c->text->str, ranks) && (size == 0 || ranks->len == size))
            return TRUE;
    }
    const gchar *known = g_hash_table_lookup(c->group_ranks, name);
    if (known && parse_ranks(known, ranks))
        return TRUE;
    g_array_set_size(ranks, 0);
    if (size == 0 || size != (guint64)MAX(c->world_size, 0) || size > c->implied_left)
        return FALSE;
    c->implied_left -= size;
    for (gint32 i = 0; i < (gint32)size; i++) /* all there are */
        g_array_append_val(ranks, i);
    return TRUE;
}

static guint32 make_group(RsChrome *c, guint n, const gchar *name, guint64 size)
{
    g_autoptr(GArray) ranks = g_array_new(FALSE, FALSE, sizeof(gint32));
    gboolean known = find_members(c, n, name, size, ranks);
    guint64 identity = rs_chrome_hash(ranks->len, name, strlen(name));
    identity = rs_chrome_hash(identity, ranks->data, ranks->len * sizeof(gint32));
    const RsJsonSpan *about = rs_chrome_arg(c, n, "Process Group Description");
    g_autofree gchar *text =
        about ? g_strdup(rs_builder_text(c->b, rs_chrome_string(c, about))) : NULL;
    g_autofree gchar *label = text && *text && !g_str_equal(text, "undefined")
                                  ? g_strdup_printf("%s (%s)", text, name)
                                  : g_strdup_printf("group %s", name);
    gint32 members = (gint32)MIN(known ? ranks->len : size, G_MAXINT32);
    guint32 comm = rs_builder_comm(c->b, identity, 0, RS_COMM_NCCL, members, label);
    if (known)
        rs_builder_comm_members(c->b, comm, (const gint32 *)(void *)ranks->data, ranks->len);
    for (guint i = 0; known && i < ranks->len; i++)
        c->max_member = MAX(c->max_member, g_array_index(ranks, gint32, i));
    guint64 own = number(c, n, "Rank");
    if (known && rs_chrome_arg(c, n, "Rank") && own < ranks->len)
        c->own_member = g_array_index(ranks, gint32, own);
    return comm;
}

static guint32 find_group(RsChrome *c, guint n, guint64 size)
{
    const RsJsonSpan *name = rs_chrome_arg(c, n, "Process Group Name");
    const RsJsonSpan *list = rs_chrome_arg(c, n, "Process Group Ranks");
    if (!name && !list && size == 0)
        return RS_NONE;
    g_autofree gchar *plain = NULL;
    if (name) {
        rs_json_text(name, c->text);
        plain = g_strdup(c->text->str);
    } else {
        plain = g_strdup("");
    }
    g_autofree gchar *key =
        g_strdup_printf("%s\n%.*s\n%" G_GUINT64_FORMAT, plain,
                        list ? (int)MIN(list->n, 1 << 20) : 0, list ? list->at : "", size);
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(c->groups, key));
    if (!known) {
        known = make_group(c, n, plain, size) + 1;
        g_hash_table_insert(c->groups, g_steal_pointer(&key), GUINT_TO_POINTER(known));
    }
    return known - 1;
}

gboolean rs_chrome_collective(RsChrome *c, guint n, RsSig *s, guint32 *ret_seq)
{
    const RsJsonSpan *name = rs_chrome_arg(c, n, "Collective name");
    const RsJsonSpan *dtype = rs_chrome_arg(c, n, "dtype"), *seq = rs_chrome_arg(c, n, "Seq");
    guint64 size = number(c, n, "Group size"), value;
    if (!name)
        return FALSE;
    g_autofree gchar *raw = g_strdup(rs_builder_text(c->b, rs_chrome_string(c, name)));
    g_autofree gchar *plain = dup_plain_name(raw);
    rs_chrome_name_kernel(c, s); /* what is computed, where the fields don't say it */
    s->coll = (guint8)rs_coll_of_name(plain, NULL);
    s->domain = s->name;
    s->name = rs_builder_string(c->b, plain);
    s->api = RS_API_NCCL;
    s->op = 0;
    s->klass = g_str_equal(plain, "send")   ? RS_CLASS_SEND
               : g_str_equal(plain, "recv") ? RS_CLASS_RECV
                                            : RS_CLASS_COLL;
    s->dtype = dtype ? rs_chrome_string(c, dtype) : 0;
    s->comm = find_group(c, n, size);
    set_size(c, n, size, s);
    if (s->coll == RS_COLL_NONE || s->comm == RS_NONE || !seq || !rs_json_u64(seq, &value))
        return FALSE;
    *ret_seq = (guint32)value;
    return TRUE;
}

/* ---- distributedInfo ---- */

static void take_group(RsChrome *c, const RsJsonSpan *config)
{
    RsJsonSpan name = rs_json_find(config, "pg_name"), ranks = rs_json_find(config, "ranks");
    if (name.type == RS_JSON_NONE || ranks.type == RS_JSON_NONE)
        return;
    rs_json_text(&name, c->text);
    gchar *key = g_strdup(c->text->str);
    rs_json_text(&ranks, c->text);
    g_hash_table_replace(c->group_ranks, key, g_strdup(c->text->str));
}

void rs_chrome_distributed_info(RsChrome *c, const RsJsonSpan *info)
{
    RsJsonSpan rank = rs_json_find(info, "rank"), size = rs_json_find(info, "world_size");
    RsJsonSpan groups = rs_json_find(info, "pg_config"), group;
    guint64 v;
    c->is_kineto = TRUE;
    if (rs_json_u64(&rank, &v) && v < G_MAXINT32)
        c->rank = (gint32)v;
    if (rs_json_u64(&size, &v) && v < G_MAXINT32)
        c->world_size = (gint32)v;
    const gchar *at = groups.at;
    while (groups.type == RS_JSON_ARRAY && rs_json_next_item(&groups, &at, &group))
        take_group(c, &group);
}
