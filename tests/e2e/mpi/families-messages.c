/* SPDX-License-Identifier: Apache-2.0 */
#include "families.h"

#include <stdlib.h>

#define N 4

static int right(void)
{
    return (rank + 1) % N;
}
static int left(void)
{
    return (rank + N - 1) % N;
}

static void check_status(const char *what, const MPI_Status *s, int source, int tag, int count)
{
    int n;
    MPI_Get_count(s, MPI_INT, &n);
    CHECK(what, s->MPI_SOURCE, source);
    CHECK(what, s->MPI_TAG, tag);
    CHECK(what, n, count);
}

typedef int send_fn(const void *, count_t, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_fn(const void *, count_t, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

/* The receive is posted first, which is what Rsend needs: both sides have passed the barrier. */
static void blocking_mode(MPI_Comm comm, const char *name, send_fn *send)
{
    int v[3] = {element(rank, 0), element(rank, 1), element(rank, 2)}, got[5] = {0};
    MPI_Request q;
    MPI_Status s;
    CALL_N(Irecv, got, 5, MPI_INT, left(), 5, comm, &q);
    CALL(Barrier, comm);
    count_call(name);
    expect_success(name, send(v, 3, MPI_INT, right(), 5, comm));
    CALL(Wait, &q, &s);
    check_status(name, &s, left(), 5, 3);
    CHECK(name, got[2], element(left(), 2));
}

static void started_mode(MPI_Comm comm, const char *name, isend_fn *send)
{
    int v = element(rank, 4), got = 0;
    MPI_Request q[2];
    CALL_N(Irecv, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &q[0]);
    CALL(Barrier, comm);
    count_call(name);
    expect_success(name, send(&v, 1, MPI_INT, right(), 6, comm, &q[1]));
    CALL(Waitall, 2, q, MPI_STATUSES_IGNORE);
    CHECK(name, got, element(left(), 4));
    CALL(Barrier, comm);
}

static void modes(MPI_Comm comm)
{
    static char room[1 << 16];
    int n;
    void *detached;
    CALL(Buffer_attach, room, sizeof room);
    blocking_mode(comm, FUNCTION(Send));
    blocking_mode(comm, FUNCTION(Bsend));
    blocking_mode(comm, FUNCTION(Ssend));
    blocking_mode(comm, FUNCTION(Rsend));
    started_mode(comm, FUNCTION(Isend));
    started_mode(comm, FUNCTION(Ibsend));
    started_mode(comm, FUNCTION(Issend));
    started_mode(comm, FUNCTION(Irsend));
    CALL(Buffer_detach, &detached, &n);
}

static void receives(MPI_Comm comm)
{
    int v = element(rank, 0), got = 0;
    MPI_Request q;
    MPI_Status s;
    CALL_N(Isend, &v, 1, MPI_INT, right(), 11, comm, &q);
    CALL_N(Recv, &got, 1, MPI_INT, MPI_ANY_SOURCE, 11, comm, MPI_STATUS_IGNORE);
    CHECK("recv any", got, element(left(), 0));
    CALL(Wait, &q, MPI_STATUS_IGNORE);
    CALL_N(Isend, &v, 1, MPI_INT, right(), 12, comm, &q);
    CALL_N(Recv, &got, 1, MPI_INT, left(), MPI_ANY_TAG, comm, &s);
    check_status("recv", &s, left(), 12, 1);
    CALL(Wait, &q, MPI_STATUS_IGNORE);
    CALL_N(Recv, &got, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &s);
    check_status("recv from null", &s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    CALL_N(Send, &v, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
    CALL_N(Sendrecv, &v, 1, MPI_INT, right(), 13, &got, 1, MPI_INT, left(), 13, comm,
           MPI_STATUS_IGNORE);
    CHECK("sendrecv", got, element(left(), 0));
    CALL_N(Sendrecv, &v, 1, MPI_INT, left(), 14, &got, 1, MPI_INT, MPI_ANY_SOURCE, 14, comm, &s);
    check_status("sendrecv any", &s, right(), 14, 1);
    CALL_N(Sendrecv_replace, &v, 1, MPI_INT, right(), 15, left(), 15, comm, &s);
    CHECK("sendrecv_replace", v, element(left(), 0));
}

/* A type whose place is an address: MPI_BOTTOM must reach the library as it is. */
static void bottom(MPI_Comm comm)
{
    int v = element(rank, 3), got = 0, one = 1;
    MPI_Aint at[2];
    MPI_Datatype out, back;
    MPI_Status s;
    MPI_Get_address(&v, &at[0]);
    MPI_Get_address(&got, &at[1]);
    MPI_Type_create_hindexed(1, &one, &at[0], MPI_INT, &out);
    MPI_Type_create_hindexed(1, &one, &at[1], MPI_INT, &back);
    MPI_Type_commit(&out);
    MPI_Type_commit(&back);
    CALL_N(Sendrecv, MPI_BOTTOM, 1, out, right(), 16, MPI_BOTTOM, 1, back, left(), 16, comm, &s);
    CHECK("bottom", got, element(left(), 3));
    CALL(Type_free, &out);
    CALL(Type_free, &back);
}

static void probes(MPI_Comm comm)
{
    int v[2] = {element(rank, 0), element(rank, 1)}, got[2] = {0}, flag;
    MPI_Request q[4], r;
    MPI_Status s;
    MPI_Message m;
    for (int i = 0; i < 4; i++)
        CALL_N(Isend, v, 2, MPI_INT, right(), 20 + i, comm, &q[i]);
    CALL(Probe, MPI_ANY_SOURCE, 20, comm, &s);
    check_status("probe", &s, left(), 20, 2);
    CALL_N(Recv, got, 2, MPI_INT, left(), 20, comm, MPI_STATUS_IGNORE);
    do
        CALL(Iprobe, left(), 21, comm, &flag, MPI_STATUS_IGNORE);
    while (poll_again(flag));
    CALL_N(Recv, got, 2, MPI_INT, left(), 21, comm, &s);
    CALL(Mprobe, MPI_ANY_SOURCE, 22, comm, &m, MPI_STATUS_IGNORE);
    CALL_N(Mrecv, got, 2, MPI_INT, &m, &s);
    check_status("mrecv", &s, left(), 22, 2);
    do
        CALL(Improbe, left(), MPI_ANY_TAG, comm, &flag, &m, &s);
    while (poll_again(flag));
    check_status("improbe", &s, left(), 23, 2);
    CALL_N(Imrecv, got, 2, MPI_INT, &m, &r);
    CALL(Wait, &r, MPI_STATUS_IGNORE);
    CHECK("imrecv", got[1], element(left(), 1));
    CALL(Waitall, 4, q, MPI_STATUSES_IGNORE);
}

static void persistent(MPI_Comm comm)
{
    static char room[1 << 12];
    int v = element(rank, 0), got = 0, n;
    void *detached;
    MPI_Request q[5], receive;
    CALL(Buffer_attach, room, sizeof room);
    CALL_N(Recv_init, &got, 1, MPI_INT, left(), 30, comm, &receive);
    CALL_N(Send_init, &v, 1, MPI_INT, right(), 30, comm, &q[0]);
    CALL_N(Bsend_init, &v, 1, MPI_INT, right(), 30, comm, &q[1]);
    CALL_N(Ssend_init, &v, 1, MPI_INT, right(), 30, comm, &q[2]);
    CALL_N(Rsend_init, &v, 1, MPI_INT, right(), 30, comm, &q[3]);
    for (int i = 0; i < 4; i++) {
        v = element(rank, i);
        CALL(Start, &receive);
        count_call("MPI_Start_receive");
        CALL(Barrier, comm);
        MPI_Request both[1] = {q[i]};
        CALL(Startall, 1, both);
        count_call("MPI_Start_send");
        CALL(Wait, &receive, MPI_STATUS_IGNORE);
        CALL(Wait, &q[i], MPI_STATUS_IGNORE);
        CHECK("persistent", got, element(left(), i));
        CALL(Request_free, &q[i]);
    }
    CALL(Wait, &receive, MPI_STATUS_IGNORE); /* inactive */
    CALL(Request_free, &receive);
    CALL(Buffer_detach, &detached, &n);
}

void SIZED(messages)(MPI_Comm comm)
{
    modes(comm);
    receives(comm);
    bottom(comm);
    probes(comm);
    persistent(comm);
}

/* ---- completion ---- */

#define MANY 300
static int values[MANY], gots[MANY];
static MPI_Request requests[2 * MANY];

static void start(MPI_Comm comm, int n)
{
    for (int i = 0; i < n; i++) {
        values[i] = element(rank, i);
        gots[i] = 0;
        CALL_N(Irecv, &gots[i], 1, MPI_INT, i % 2 ? left() : MPI_ANY_SOURCE, i, comm, &requests[i]);
    }
    for (int i = 0; i < n; i++)
        CALL_N(Isend, &values[i], 1, MPI_INT, right(), i, comm, &requests[n + i]);
}

static void check_all(const char *what, int n)
{
    long long sum = 0, expected = 0;
    for (int i = 0; i < n; i++) {
        sum += (long long)(i + 1) * gots[i];
        expected += (long long)(i + 1) * element(left(), i);
    }
    CHECK(what, sum, expected);
    for (int i = 0; i < 2 * n; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            CHECK(what, i, -1);
}

static void all_at_once(MPI_Comm comm)
{
    MPI_Status *s = calloc(2 * MANY, sizeof *s);
    int flag;
    start(comm, MANY);
    CALL(Waitall, 2 * MANY, requests, MPI_STATUSES_IGNORE);
    check_all("waitall of many", MANY);
    start(comm, 5);
    CALL(Waitall, 10, requests, s);
    check_status("waitall", &s[4], left(), 4, 1);
    check_all("waitall", 5);
    start(comm, 7);
    do
        CALL(Testall, 14, requests, &flag, MPI_STATUSES_IGNORE);
    while (poll_again(flag));
    check_all("testall", 7);
    CALL(Waitall, 14, requests, MPI_STATUSES_IGNORE); /* all null */
    CALL(Waitall, 0, requests, MPI_STATUSES_IGNORE);
    CALL(Waitall, 0, NULL, MPI_STATUSES_IGNORE);
    free(s);
}

static void one_of(MPI_Comm comm)
{
    int index, flag, done = 0;
    MPI_Status s;
    start(comm, 6);
    for (int i = 0; i < 12; i++) {
        CALL(Waitany, 12, requests, &index, i % 2 ? &s : MPI_STATUS_IGNORE);
        CHECK("waitany", index >= 0 && index < 12, 1);
    }
    check_all("waitany", 6);
    CALL(Waitany, 12, requests, &index, MPI_STATUS_IGNORE);
    CHECK("waitany of null", index, MPI_UNDEFINED);
    start(comm, 3);
    do {
        CALL(Testany, 6, requests, &index, &flag, MPI_STATUS_IGNORE);
        done += flag;
    } while (poll_again(done == 6));
    check_all("testany", 3);
    CALL(Testany, 6, requests, &index, &flag, MPI_STATUS_IGNORE);
    CHECK("testany of null", flag && index == MPI_UNDEFINED, 1);
}

static void some_of(MPI_Comm comm)
{
    int n, indices[8], done = 0;
    MPI_Status s[8];
    start(comm, 4);
    while (done < 8) {
        CALL(Waitsome, 8, requests, &n, indices, s);
        done += n;
    }
    check_all("waitsome", 4);
    CALL(Waitsome, 8, requests, &n, indices, MPI_STATUSES_IGNORE);
    CHECK("waitsome of null", n, MPI_UNDEFINED);
    start(comm, 4);
    done = 0;
    do {
        CALL(Testsome, 8, requests, &n, indices, MPI_STATUSES_IGNORE);
        done += n;
    } while (poll_again(done == 8));
    check_all("testsome", 4);
}

static void test_one(MPI_Comm comm)
{
    int flag;
    start(comm, 1);
    for (int i = 0; i < 2; i++)
        do
            CALL(Test, &requests[i], &flag, MPI_STATUS_IGNORE);
        while (poll_again(flag));
    check_all("test", 1);
    MPI_Request none = MPI_REQUEST_NULL;
    MPI_Status s;
    CALL(Wait, &none, &s);
    CHECK("wait of null", s.MPI_SOURCE, MPI_ANY_SOURCE);
    CALL(Test, &none, &flag, &s);
    CHECK("test of null", flag, 1);
}

static void cancelled(MPI_Comm comm)
{
    int got, flag;
    MPI_Request q;
    MPI_Status s;
    CALL_N(Irecv, &got, 1, MPI_INT, left(), 9999, comm, &q);
    CALL(Request_get_status, q, &flag, &s);
    CHECK("nothing came", flag, 0);
    CALL(Cancel, &q);
    CALL(Wait, &q, &s);
    MPI_Test_cancelled(&s, &flag);
    CHECK("cancelled", flag, 1);
}

static int tell(void *extra, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int release(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}
static int stop(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

/* A request of the program's own making. */
static void generalized(void)
{
    int elements = 3, n;
    MPI_Request q;
    MPI_Status s;
    CALL(Grequest_start, tell, release, stop, &elements, &q);
    CALL(Grequest_complete, q);
    CALL(Wait, &q, &s);
    MPI_Get_count(&s, MPI_INT, &n);
    CHECK("generalized", n, 3);
}

void SIZED(completions)(MPI_Comm comm)
{
    generalized();
    all_at_once(comm);
    one_of(comm);
    some_of(comm);
    test_one(comm);
    cancelled(comm);
}
