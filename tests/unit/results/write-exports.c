/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write-exports DIR - writes runs of known truth in every format, for check-exports.py.
 *
 * "messy" has all that is hard to export: names with control bytes and quotes, ranges that overlap,
 * calls that never ended, counters that are no number, marks, lost events; "wide" has a
 * communicator above 16 ranks; "faults" a straggler and a slow link; "missing" lacks a rank.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/export.h"
#include "report/report.h"
#include "scene.h"
#include "synthetic-run.h"

static void counter(Scene *s, guint rank, gdouble at_us, gfloat value)
{
    guint32 bits;
    memcpy(&bits, &value, sizeof bits);
    RsSig sig = rs_builder_sig_init(s->b, RS_KIND_COUNTER, "rx \"bytes\"");
    gint64 ns = (gint64)(at_us * 1000);
    rs_builder_event(s->b, s->main[rank], rs_builder_sig(s->b, &sig), ns, ns, 0, 0, bits);
}

static void span(Scene *s, guint rank, RsKind kind, const gchar *name, gint64 from, gint64 to,
                 guint16 flags)
{
    RsSig sig = rs_builder_sig_init(s->b, kind, name);
    sig.count = kind == RS_KIND_HOLE ? 17 : 0;
    if (kind == RS_KIND_CALL) {
        sig.api = RS_API_MPI;
        sig.klass = RS_CLASS_RECV;
        sig.comm = s->world;
        sig.peer = 1;
    }
    rs_builder_event(s->b, s->main[rank], rs_builder_sig(s->b, &sig), from, to, flags, 0, 0);
}

static RsModel *make_messy(void)
{
    Scene s;
    scene_init(&s, 4, 2);
    for (guint i = 0; i < 12; i++) {
        gdouble t = 1000 * i + 3.217;
        for (guint r = 0; r < 4; r++) {
            scene_range(&s, r, "step", 0, t, t + 900);
            scene_range(&s, r, i % 2 ? "=cmd|' /C calc'!A0" : "a\"b\\c\n\x1b[31mred\x07", 1,
                        t + 1.5, t + 99 + r);
            scene_collective(&s, r, i % 3 ? RS_COLL_ALLREDUCE : RS_COLL_BARRIER, i, 77 * i, 0,
                             t + 100.001 + 11 * r, t + 150 + r);
            /* half overlapping: two lanes */
            scene_range(&s, r, "overlap \xff\xfe bytes", 2, t + 200, t + 300 + 0.001 * r);
            scene_range(&s, r,
                        "\xe2\x80\xae"
                        "evil <b>",
                        2, t + 250, t + 350);
            scene_negotiate(&s, r, "grad,1", t + 400 + i, t + 500);
            scene_negotiate(&s, r, "grad,2", t + 450, t + 550 + r);
            counter(&s, r, t + 5, i == 3 ? NAN : i == 4 ? INFINITY : 1.5f + (gfloat)r);
        }
        scene_message(&s, 0, 2, 40000 + i, t + 600, t + 590, t + 700);
        scene_message(&s, 2, 1, 50000 + i, t + 720, t + 710, t + 800);
        span(&s, 3, RS_KIND_MARK, "mark\t1", 1000 * (gint64)t, 1000 * (gint64)t, 0);
    }
    span(&s, 1, RS_KIND_HOLE, "events lost", 12100000, 12200000, 0);
    span(&s, 0, RS_KIND_CALL, "MPI_Recv", 12100000, 12150000, RS_FLAG_OPEN);
    span(&s, 3, RS_KIND_RANGE, "late", 12160000, 12400007, 0);
    span(&s, 2, RS_KIND_RANGE, "empty", 12100000, 12100000, 0);
    RsProcess *p = rs_builder_process(s.b, s.process[0]);
    p->dropped = 17;
    rs_builder_set_text(&p->note, "killed by \x1b]0;signal 9\x07");
    rs_builder_meta(s.b, s.process[0], "nccl.standin", "hostnccl 1");
    rs_builder_meta(s.b, s.process[1], "env.X", "a\"\\\x01 b");
    rs_builder_warn(s.b, "run/\x1b[2Jx.rsc", 1234, "block %d is damaged", 3);
    return scene_finish(&s);
}

static RsModel *make_synthetic(const gchar *name)
{
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.seed = 5;
    if (strcmp(name, "wide") == 0) {
        spec.n_ranks = 20;
        spec.n_hosts = 5;
        spec.nccl = TRUE;
        spec.negotiate = TRUE;
        spec.n_steps = 7;
    } else if (strcmp(name, "missing") == 0) {
        spec.missing_rank = 2;
    } else {
        spec.slow_rank = 3;
        spec.late_ns = 9000000;
        spec.slow_src = 0;
        spec.slow_dst = 1;
        spec.slow_bytes_per_s = 30e6;
    }
    return rs_synthetic_run(&spec);
}

static int save(const gchar *folder, const gchar *name, const gchar *suffix, gchar *text)
{
    g_autofree gchar *path = g_strdup_printf("%s/%s.%s", folder, name, suffix);
    gboolean good = g_file_set_contents(path, text, -1, NULL);
    g_free(text);
    return good ? 0 : 1;
}

static int write_run(const gchar *folder, const gchar *name, RsModel *model)
{
    g_autoptr(RsModel) m = model;
    g_autoptr(RsResults) results = rs_analyze(m, NULL);
    RsReport report = {.model = m, .results = results, .name = name};
    RsExport x = {.model = m, .results = results};
    int failed = save(folder, name, "report.json", rs_report_json(&report)) +
                 save(folder, name, "txt", rs_report_text(&report));
    for (const RsExportFormat *f = rs_export_formats; f->name; f++) {
        g_autoptr(GError) error = NULL;
        g_autofree gchar *path = g_strdup_printf("%s/%s.%s", folder, name, f->name);
        if (!f->write(&x, path, &error)) {
            fprintf(stderr, "%s\n", error->message);
            failed++;
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    static const gchar *const names[] = {"wide", "faults", "missing"};
    if (argc != 2)
        return 2;
    int failed = write_run(argv[1], "messy", make_messy());
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        failed += write_run(argv[1], names[i], make_synthetic(names[i]));
    return failed ? 1 : 0;
}
