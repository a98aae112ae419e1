/* SPDX-License-Identifier: Apache-2.0 */
/*
 * viewer-paint [EVENTS] - a frame of the window with the whole run in view, against memset of the
 * same pixels: slices alone (what grows with the run), and the frame with names, ruler and gutter.
 * Median of many frames. Prints; asserts nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lod.h"
#include "paint.h"
#include "synthetic-run.h"

#define WIDTH  1280
#define HEIGHT 800
#define FRAMES 31

typedef struct {
    RsScene *scene;
    cairo_t *cr;
    guint32 *pixels;
} Bench;

static void frame(Bench *b)
{
    rs_paint_scene(b->scene, b->cr);
}

static void slices(Bench *b)
{
    const RsScene *s = b->scene;
    RsCanvas canvas = {b->pixels, WIDTH, WIDTH, HEIGHT};
    rs_canvas_fill(&canvas, 0, 0, WIDTH, HEIGHT, 0xffffff);
    for (guint32 row = 0; row < s->rows.rows->len; row++) {
        gint y, height;
        if (rs_layout_row_box(&s->layout, row, &y, &height) && y < HEIGHT)
            rs_lod_paint_row(&canvas, &s->rows, row, &s->axis, 0, y, height);
    }
}

static void clear(Bench *b)
{
    memset(b->pixels, 0x5a, sizeof *b->pixels * WIDTH * HEIGHT);
    __asm__ volatile("" : : "r"(b->pixels) : "memory");
}

static int compare(const void *a, const void *b)
{
    gint64 x = *(const gint64 *)a, y = *(const gint64 *)b;
    return x < y ? -1 : x > y;
}

static gdouble median_us(Bench *b, void (*work)(Bench *))
{
    gint64 took[FRAMES];
    struct timespec t0, t1;
    for (guint i = 0; i < FRAMES; i++) {
        clock_gettime(CLOCK_MONOTONIC, &t0);
        work(b);
        clock_gettime(CLOCK_MONOTONIC, &t1);
        took[i] = (t1.tv_sec - t0.tv_sec) * 1000000000L + t1.tv_nsec - t0.tv_nsec;
    }
    qsort(took, FRAMES, sizeof *took, compare);
    return (gdouble)took[FRAMES / 2] / 1000;
}

int main(int argc, char **argv)
{
    gulong events = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    RsSyntheticRun spec = rs_synthetic_healthy;
    spec.n_ranks = 8;
    spec.negotiate = TRUE;
    spec.n_steps = (guint)MAX(events / (8 * 8), 1); /* 8 events a step and rank */
    g_autoptr(RsScene) s = rs_scene_new(rs_synthetic_run(&spec), "bench");
    rs_scene_resize(s, WIDTH, HEIGHT);
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, HEIGHT);
    Bench b = {s, cairo_create(image), g_new(guint32, WIDTH * HEIGHT)};
    gdouble plain = median_us(&b, clear), own = median_us(&b, slices), all = median_us(&b, frame);
    printf("%u events, %u rows, %d x %d pixels\n", s->model->events.n, s->rows.rows->len, WIDTH,
           HEIGHT);
    printf("memset %8.0f us\nslices %8.0f us  ratio %.1f\nframe  %8.0f us  ratio %.1f\n", plain,
           own, own / plain, all, all / plain);
    cairo_destroy(b.cr);
    cairo_surface_destroy(image);
    g_free(b.pixels);
    return 0;
}
