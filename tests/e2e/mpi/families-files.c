/* SPDX-License-Identifier: Apache-2.0 */
#include "families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N     4
#define EACH  3 /* elements that a rank writes at a time */
#define ATEND 5 /* more than is there */

static int out[EACH], in[ATEND];
static MPI_Status s;

static void prepare(int i)
{
    for (int k = 0; k < EACH; k++)
        out[k] = element(rank, i + k);
    memset(in, 0, sizeof in);
}

static void check_in(const char *what, int r, int i)
{
    for (int k = 0; k < EACH; k++)
        CHECK(what, in[k], element(r, i + k));
}

static void check_moved(const char *what, int expected)
{
    int n;
    MPI_Get_count(&s, MPI_INT, &n);
    CHECK(what, n, expected);
}

static void finish(MPI_Request *request)
{
    CALL(Wait, request, &s);
}

static MPI_Offset place(int r)
{
    return (MPI_Offset)r * EACH;
}

static MPI_File open_as_ints(MPI_Comm comm, const char *path)
{
    MPI_File f;
    CALL(File_open, comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    CALL(File_set_view, f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    return f;
}

/* What is written by everybody can be read by everybody. */
static void settle(MPI_Comm comm, MPI_File f)
{
    CALL(File_sync, f);
    CALL(Barrier, comm);
    CALL(File_sync, f);
}

/* Open MPI's ROMIO ends the program in a collective access that is only started. */
static bool starts_collectives(void)
{
    return !getenv("OMPI_MCA_io");
}

static void at_offsets(MPI_Comm comm, MPI_File f)
{
    MPI_Request q;
    int next = (rank + 1) % N;
    prepare(0);
    CALL_N(File_write_at, f, place(rank), out, EACH, MPI_INT, &s);
    check_moved("write_at", EACH);
    settle(comm, f);
    CALL_N(File_read_at, f, place(next), in, EACH, MPI_INT, MPI_STATUS_IGNORE);
    check_in("read_at", next, 0);
    CALL_N(File_read_at, f, place(N) - 2, in, ATEND, MPI_INT, &s);
    check_moved("read_at, in part", 2);
    settle(comm, f);
    prepare(1);
    CALL_N(File_write_at_all, f, place(rank), out, EACH, MPI_INT, MPI_STATUS_IGNORE);
    settle(comm, f);
    CALL_N(File_read_at_all, f, place(next), in, EACH, MPI_INT, &s);
    check_in("read_at_all", next, 1);
    settle(comm, f);
    prepare(2);
    CALL_N(File_iwrite_at, f, place(rank), out, EACH, MPI_INT, &q), finish(&q);
    settle(comm, f);
    CALL_N(File_iread_at, f, place(next), in, EACH, MPI_INT, &q), finish(&q);
    check_in("iread_at", next, 2);
    settle(comm, f);
    if (starts_collectives()) {
        prepare(3);
        CALL_N(File_iwrite_at_all, f, place(rank), out, EACH, MPI_INT, &q), finish(&q);
        settle(comm, f);
        CALL_N(File_iread_at_all, f, place(next), in, EACH, MPI_INT, &q), finish(&q);
        check_in("iread_at_all", next, 3);
        settle(comm, f);
    }
    prepare(4);
    CALL_N(File_write_at_all_begin, f, place(rank), out, EACH, MPI_INT);
    CALL(File_write_at_all_end, f, out, &s);
    settle(comm, f);
    CALL_N(File_read_at_all_begin, f, place(next), in, EACH, MPI_INT);
    CALL(File_read_at_all_end, f, in, MPI_STATUS_IGNORE);
    check_in("read_at_all_begin", next, 4);
    settle(comm, f);
}

static void seek(MPI_File f)
{
    CALL(File_seek, f, place(rank), MPI_SEEK_SET);
}

static void at_own_pointers(MPI_Comm comm, MPI_File f)
{
    MPI_Request q;
    MPI_Offset at;
    prepare(5);
    seek(f);
    CALL_N(File_write, f, out, EACH, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(f, &at);
    CHECK("position", at, place(rank + 1));
    seek(f);
    CALL_N(File_read, f, in, EACH, MPI_INT, &s);
    check_in("read", rank, 5);
    settle(comm, f);
    prepare(6);
    seek(f);
    CALL_N(File_write_all, f, out, EACH, MPI_INT, &s);
    seek(f);
    CALL_N(File_read_all, f, in, EACH, MPI_INT, MPI_STATUS_IGNORE);
    check_in("read_all", rank, 6);
    settle(comm, f);
    prepare(7);
    seek(f);
    CALL_N(File_iwrite, f, out, EACH, MPI_INT, &q), finish(&q);
    seek(f);
    CALL_N(File_iread, f, in, EACH, MPI_INT, &q), finish(&q);
    check_in("iread", rank, 7);
    settle(comm, f);
    if (starts_collectives()) {
        prepare(8);
        seek(f);
        CALL_N(File_iwrite_all, f, out, EACH, MPI_INT, &q), finish(&q);
        seek(f);
        CALL_N(File_iread_all, f, in, EACH, MPI_INT, &q), finish(&q);
        check_in("iread_all", rank, 8);
        settle(comm, f);
    }
    prepare(9);
    seek(f);
    CALL_N(File_write_all_begin, f, out, EACH, MPI_INT);
    CALL(File_write_all_end, f, out, MPI_STATUS_IGNORE);
    seek(f);
    CALL_N(File_read_all_begin, f, in, EACH, MPI_INT);
    CALL(File_read_all_end, f, in, &s);
    check_in("read_all_begin", rank, 9);
    settle(comm, f);
}

static void rewind_all(MPI_File f)
{
    CALL(File_seek_shared, f, 0, MPI_SEEK_SET);
}

/* Who comes first gets what comes first: only sums are known. */
static int sum_in(void)
{
    int sum = 0;
    for (int k = 0; k < EACH; k++)
        sum += in[k];
    CALL(Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static int sum_of(int i)
{
    int sum = 0;
    for (int r = 0; r < N; r++)
        for (int k = 0; k < EACH; k++)
            sum += element(r, i + k);
    return sum;
}

static void at_shared_pointer(MPI_Comm comm, MPI_File f)
{
    MPI_Request q;
    MPI_Offset at;
    prepare(10);
    rewind_all(f);
    CALL_N(File_write_shared, f, out, EACH, MPI_INT, &s);
    settle(comm, f);
    CALL(File_get_position_shared, f, &at);
    CHECK("shared position", at, place(N));
    settle(comm, f);
    rewind_all(f);
    CALL_N(File_read_shared, f, in, EACH, MPI_INT, MPI_STATUS_IGNORE);
    CHECK("read_shared", sum_in(), sum_of(10));
    prepare(11);
    rewind_all(f);
    CALL_N(File_iwrite_shared, f, out, EACH, MPI_INT, &q), finish(&q);
    settle(comm, f);
    rewind_all(f);
    CALL_N(File_iread_shared, f, in, EACH, MPI_INT, &q), finish(&q);
    CHECK("iread_shared", sum_in(), sum_of(11));
    prepare(12);
    rewind_all(f);
    CALL_N(File_write_ordered, f, out, EACH, MPI_INT, &s);
    settle(comm, f);
    rewind_all(f);
    CALL_N(File_read_ordered, f, in, EACH, MPI_INT, &s);
    check_in("read_ordered", rank, 12);
    settle(comm, f);
    prepare(13);
    rewind_all(f);
    CALL_N(File_write_ordered_begin, f, out, EACH, MPI_INT);
    CALL(File_write_ordered_end, f, out, &s);
    settle(comm, f);
    rewind_all(f);
    CALL_N(File_read_ordered_begin, f, in, EACH, MPI_INT);
    CALL(File_read_ordered_end, f, in, &s);
    check_in("read_ordered_begin", rank, 13);
    settle(comm, f);
}

/* What only asks leaves no record, whatever the library calls for it. */
static void asked(MPI_File f)
{
    MPI_Offset at;
    MPI_Datatype etype, filetype;
    MPI_Group group;
    MPI_Info info;
    MPI_Aint extent;
    char name[MPI_MAX_DATAREP_STRING];
    int n;
    MPI_File_get_amode(f, &n);
    MPI_File_get_atomicity(f, &n);
    MPI_File_get_byte_offset(f, 3, &at);
    CHECK("byte offset", at, 3 * sizeof(int));
    MPI_File_get_view(f, &at, &etype, &filetype, name);
    MPI_File_get_group(f, &group);
    MPI_Group_free(&group);
    MPI_File_get_info(f, &info);
    MPI_Info_free(&info);
    MPI_File_get_type_extent(f, MPI_INT, &extent);
    CHECK("extent", extent, sizeof(int));
}

static void managed(MPI_Comm comm, MPI_File f)
{
    MPI_Offset bytes;
    MPI_Info info;
    CALL(File_set_size, f, 8192);
    /* nothing is left to do: Open MPI's (4.1.4, ompio) hangs where a rank asks for the size when
     * rank 0 has grown the file already */
    CALL(File_preallocate, f, 4096);
    CALL(Barrier, comm);
    CALL(File_get_size, f, &bytes);
    CHECK("size", bytes, 8192);
    MPI_Info_create(&info);
    CALL(File_set_info, f, info);
    MPI_Info_free(&info);
    CALL(File_set_atomicity, f, 0);
}

void SIZED(files)(MPI_Comm comm)
{
    char path[4200];
    MPI_File f;
    snprintf(path, sizeof path, "%s/data", folder);
    f = open_as_ints(comm, path);
    at_offsets(comm, f);
    at_own_pointers(comm, f);
    at_shared_pointer(comm, f);
    asked(f);
    managed(comm, f);
    CALL(File_close, &f);
    CHECK("file is null", f == MPI_FILE_NULL, 1);
    CALL(Barrier, comm);
    if (rank == 0)
        CALL(File_delete, path, MPI_INFO_NULL);
    /* an error that files return by default, as without us */
    count_call("MPI_File_open");
    CHECK("no such file",
          MPI_File_open(comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f) == MPI_SUCCESS, 0);
}
