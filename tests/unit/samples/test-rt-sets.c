/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets as rank 0 of three has them: numbers, what ranks tell each other, and what goes
 * wrong with other ranks. These are played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-sets.h"

enum { RANKS = 3, VOTE_BYTES = 1024 };

static int32_t their_error; /* rank 1's, in what ranks agree about */
static int not_in_step;

static int gather(struct rt_fabric *f, const void *mine, void *ret, size_t bytes)
{
    char(*all)[VOTE_BYTES] = ret;
    assert_true(bytes <= VOTE_BYTES);
    for (size_t r = 0; r < RANKS; r++)
        memcpy((char *)all + r * bytes, mine, bytes);
    if (their_error) {
        memcpy((char *)all + bytes, &their_error, sizeof their_error);
        strcpy((char *)all + bytes + sizeof their_error, "no room");
    }
    return not_in_step;
}

struct job {
    struct rt_fabric fabric;
    struct rt_config config;
    struct rt_sets sets;
    char message[300];
};

/* Its set of all ranks has no transports. */
static struct job *new_job(void)
{
    static const struct rt_fabric_ops ops = {.allgather = gather};
    struct job *j = calloc(1, sizeof *j);
    j->fabric = (struct rt_fabric){.ops = &ops, .word = "PLAY", .rank = 0, .size = RANKS};
    j->config = (struct rt_config){.fusion_threshold = 0, .cache_capacity = 16};
    struct rt_sets *s = &j->sets;
    rt_sets_init(s);
    s->fabric = &j->fabric;
    s->config = &j->config;
    s->table = rt_table_new();
    s->votes = calloc(RANKS, VOTE_BYTES);
    s->list = malloc(sizeof(*s->list));
    s->list[0] = calloc(1, sizeof **s->list);
    s->list[0]->coordinator = rt_coordinator_new(RANKS, 1024, 16);
    s->list[0]->member = rt_member_new();
    s->list[0]->n = RANKS;
    s->list[0]->ranks = malloc(RANKS * sizeof(int));
    for (int r = 0; r < RANKS; r++)
        s->list[0]->ranks[r] = r;
    s->taken[0] = true;
    s->count = s->room = s->next_id = 1;
    their_error = not_in_step = 0;
    return j;
}

static void free_job(struct job *j)
{
    rt_sets_end(&j->sets, false);
    rt_sets_release(&j->sets);
    rt_table_free(j->sets.table);
    free(j);
}

static int add(struct job *j)
{
    static const int ranks[] = {1, 2};
    int id = 0;
    assert_int_equal(rt_sets_add(&j->sets, ranks, 2, &id, j->message, sizeof j->message), 0);
    return id;
}

static int take_away(struct job *j, int id)
{
    int result = 1;
    assert_int_equal(rt_sets_remove(&j->sets, id, &result, j->message, sizeof j->message), 0);
    return result;
}

/* ---- numbers ---- */

static void add_gives_ascending_numbers_and_tags_that_no_other_set_has(void **state)
{
    struct job *j = new_job();
    struct rt_set_view view;
    bool removed;
    assert_false(rt_sets_are_without_me(&j->sets));
    assert_int_equal(add(j), 1);
    assert_true(rt_sets_are_without_me(&j->sets));
    assert_int_equal(add(j), 2);
    assert_int_equal(take_away(j, 1), 0);
    assert_int_equal(rt_sets_look(&j->sets, 1, &view, &removed), -ENOENT);
    assert_true(removed);
    assert_int_equal(rt_sets_look(&j->sets, 3, &view, &removed), -ENOENT);
    assert_false(removed);
    assert_int_equal(add(j), 3);
    assert_int_equal(rt_sets_find(&j->sets, 3)->tags, 1);
    assert_int_equal(rt_sets_find(&j->sets, 2)->tags, 2);
    assert_null(rt_sets_find(&j->sets, 1));
    assert_int_equal(rt_sets_look(&j->sets, 3, &view, &removed), 0);
    assert_true(view.rank == -1 && view.size == 2);
    assert_int_equal(rt_sets_place(&j->sets, 3, 2), 1);
    assert_int_equal(rt_sets_place(&j->sets, 3, 0), -1);
    free_job(j);
}

static void copy_ranks_gives_as_many_as_there_is_room_for(void **state)
{
    struct job *j = new_job();
    int ranks[] = {7, 7, 7};
    add(j);
    assert_int_equal(rt_sets_copy_ranks(&j->sets, 1, ranks, 1), 2);
    assert_true(ranks[0] == 1 && ranks[1] == 7);
    assert_int_equal(rt_sets_copy_ranks(&j->sets, 1, ranks, 3), 2);
    assert_true(ranks[0] == 1 && ranks[1] == 2 && ranks[2] == 7);
    assert_int_equal(rt_sets_copy_ranks(&j->sets, 2, ranks, 3), -ENOENT);
    free_job(j);
}

static void remove_says_of_which_set_it_fails_and_why(void **state)
{
    struct job *j = new_job();
    add(j);
    assert_int_equal(take_away(j, 0), -EINVAL);
    assert_string_equal(j->message, "process set 0, of all ranks, stays");
    assert_int_equal(take_away(j, 2), -ENOENT);
    assert_string_equal(j->message, "there is no process set 2");
    assert_int_equal(take_away(j, -3), -ENOENT);
    assert_string_equal(j->message, "there is no process set -3");
    assert_int_equal(take_away(j, 1), 0);
    assert_int_equal(take_away(j, 1), -ENOENT);
    assert_string_equal(j->message, "process set 1 was removed before");
    free_job(j);
}

/* ---- what goes wrong ---- */

static void add_that_another_rank_cant_gives_its_reason_and_takes_no_number(void **state)
{
    struct job *j = new_job();
    their_error = -ENOMEM;
    assert_int_equal(add(j), -ENOMEM);
    assert_string_equal(j->message, "no process set was added: rank 1: no room");
    their_error = 0;
    assert_int_equal(add(j), 1);
    free_job(j);
}

static void add_beyond_what_there_may_be_is_refused(void **state)
{
    struct job *j = new_job();
    j->sets.count = RT_SETS_MAX;
    assert_int_equal(add(j), -ENOSPC);
    assert_string_equal(j->message, "there are 8192 process sets already: remove some");
    j->sets.count = 1;
    free_job(j);
}

static void ranks_that_are_not_in_step_change_no_sets(void **state)
{
    static const int ranks[] = {1, 2};
    struct job *j = new_job();
    int result;
    assert_int_equal(add(j), 1);
    not_in_step = -ECONNRESET;
    assert_int_equal(rt_sets_add(&j->sets, ranks, 2, &result, j->message, sizeof j->message),
                     -ECONNRESET);
    assert_int_equal(rt_sets_remove(&j->sets, 1, &result, j->message, sizeof j->message),
                     -ECONNRESET);
    assert_int_equal(j->sets.count, 2);
    free_job(j);
}

/* ---- what ranks tell each other ---- */

static struct rt_tensor tensor(enum rt_kind kind, int set, const char *name)
{
    struct rt_tensor t = {
        .kind = (uint8_t)kind, .set = set, .count = 1, .prescale = 1, .postscale = 1};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

/* Appends what a rank that has read no order says in full. */
static void put(struct rt_bytes *to, const struct rt_tensor *t)
{
    struct rt_member *m = rt_member_new();
    struct rt_bytes noted = {0};
    assert_int_equal(rt_member_announce(m, t), 0);
    rt_member_put(m, &noted);
    rt_member_free(m);
    const struct {
        int32_t set;
        uint32_t bytes;
    } head = {t->set, (uint32_t)noted.n};
    rt_put(to, &head, sizeof head);
    rt_put(to, noted.data, noted.n);
    free(noted.data);
}

static int say(struct job *j, int rank, struct rt_tensor t)
{
    struct rt_bytes message = {0};
    put(&message, &t);
    const int error = rt_sets_hear(&j->sets, rank, &message);
    free(message.data);
    return error;
}

static void say_by_one_and_two(struct job *j, struct rt_tensor t)
{
    assert_int_equal(say(j, 1, t), 0);
    assert_int_equal(say(j, 2, t), 0);
}

/* The orders for each rank, as "set:name[!error] ...". */
static void decide(struct job *j, char texts[RANKS][400])
{
    struct rt_bytes to[RANKS] = {0};
    assert_int_equal(rt_sets_decide(&j->sets, to), 0);
    for (int r = 0; r < RANKS; r++) {
        struct rt_reader reader = {to[r].data, to[r].n};
        size_t n = 0;
        texts[r][0] = 0;
        while (reader.left > 0) {
            struct rt_order order;
            int32_t id;
            assert_int_equal(rt_get(&reader, &id, sizeof id), 0);
            assert_int_equal(rt_get_order(&reader, &order), 0);
            n += (size_t)snprintf(texts[r] + n, 400 - n, "%d:%s", (int)id, order.tensors[0].name);
            if (order.error)
                n += (size_t)snprintf(texts[r] + n, 400 - n, "!%d", (int)order.error);
            n += (size_t)snprintf(texts[r] + n, 400 - n, " ");
            rt_order_clear(&order);
        }
        free(to[r].data);
    }
}

static void decide_tells_the_ranks_of_each_set_in_one_sequence(void **state)
{
    struct job *j = new_job();
    char texts[RANKS][400];
    struct rt_tensor high = tensor(RT_ALLREDUCE, 2, "high");
    high.priority = 1;
    add(j);
    add(j);
    rt_sets_set_time(&j->sets, 5);
    say_by_one_and_two(j, tensor(RT_ALLREDUCE, 2, "old"));
    rt_sets_set_time(&j->sets, 6);
    say_by_one_and_two(j, tensor(RT_ALLREDUCE, 1, "young"));
    assert_int_equal(say(j, 0, tensor(RT_ALLREDUCE, 0, "of all")), 0);
    rt_sets_set_time(&j->sets, 7);
    say_by_one_and_two(j, high);
    say_by_one_and_two(j, tensor(RT_ALLREDUCE, 0, "of all"));
    decide(j, texts);
    assert_string_equal(texts[0], "0:of all ");
    assert_string_equal(texts[1], "2:high 2:old 0:of all 1:young ");
    assert_string_equal(texts[2], texts[1]);
    decide(j, texts);
    assert_string_equal(texts[1], "");
    free_job(j);
}

static void decide_ends_a_set_before_its_removal(void **state)
{
    struct job *j = new_job();
    char texts[RANKS][400];
    struct rt_tensor away = tensor(RT_REMOVE_SET, 0, "rt.process-set");
    away.count = 1;
    away.priority = 9;
    add(j);
    say_by_one_and_two(j, tensor(RT_ALLREDUCE, 1, "ready"));
    assert_int_equal(say(j, 2, tensor(RT_ALLREDUCE, 1, "waits")), 0);
    assert_int_equal(say(j, 0, away), 0);
    say_by_one_and_two(j, away);
    decide(j, texts);
    assert_string_equal(texts[0], "0:rt.process-set ");
    assert_string_equal(texts[1], "1:ready 1:waits!-2 0:rt.process-set ");
    assert_string_equal(texts[2], texts[1]);
    free_job(j);
}

static void refused_removal_leaves_the_set_as_it_is(void **state)
{
    struct job *j = new_job();
    char texts[RANKS][400];
    struct rt_tensor away = tensor(RT_REMOVE_SET, 0, "rt.process-set"), other = away;
    away.count = 1;
    other.count = 2;
    add(j);
    assert_int_equal(say(j, 2, tensor(RT_ALLREDUCE, 1, "waits")), 0);
    assert_int_equal(say(j, 0, away), 0);
    assert_int_equal(say(j, 1, away), 0);
    assert_int_equal(say(j, 2, other), 0);
    decide(j, texts);
    assert_string_equal(texts[2], "0:rt.process-set!-22 ");
    assert_int_equal(say(j, 1, tensor(RT_ALLREDUCE, 1, "waits")), 0);
    decide(j, texts);
    assert_string_equal(texts[2], "1:waits ");
    free_job(j);
}

static void set_that_comes_after_a_rank_left_knows_it(void **state)
{
    struct job *j = new_job();
    char texts[RANKS][400];
    assert_int_equal(say(j, 2, tensor(RT_SHUTDOWN, 0, "rt.shutdown")), 0);
    add(j);
    assert_int_equal(say(j, 1, tensor(RT_ALLREDUCE, 1, "late")), 0);
    decide(j, texts);
    assert_string_equal(texts[1], "1:late!-108 ");
    free_job(j);
}

static void set_hears_who_leaves(void **state)
{
    struct job *j = new_job();
    char texts[RANKS][400];
    add(j);
    assert_int_equal(say(j, 1, tensor(RT_ALLREDUCE, 1, "waits")), 0);
    assert_int_equal(say(j, 2, tensor(RT_SHUTDOWN, 0, "rt.shutdown")), 0);
    decide(j, texts);
    assert_string_equal(texts[1], "1:waits!-108 ");
    free_job(j);
}

static void last_order_comes_after_all_sets_orders(void **state)
{
    struct job *j = new_job();
    char texts[RANKS][400];
    add(j);
    say_by_one_and_two(j, tensor(RT_ALLREDUCE, 1, "last"));
    assert_int_equal(say(j, 0, tensor(RT_SHUTDOWN, 0, "rt.shutdown")), 0);
    say_by_one_and_two(j, tensor(RT_SHUTDOWN, 0, "rt.shutdown"));
    decide(j, texts);
    assert_string_equal(texts[0], "0:rt.shutdown ");
    assert_string_equal(texts[1], "1:last 0:rt.shutdown ");
    free_job(j);
}

static void hear_passes_over_what_was_said_of_a_removed_set(void **state)
{
    struct job *j = new_job();
    char texts[RANKS][400];
    struct rt_bytes message = {0};
    add(j);
    add(j);
    assert_int_equal(take_away(j, 1), 0);
    struct rt_tensor gone = tensor(RT_ALLREDUCE, 1, "gone"), there = tensor(RT_ALLREDUCE, 2, "is");
    put(&message, &gone);
    put(&message, &there);
    assert_int_equal(rt_sets_hear(&j->sets, 1, &message), 0);
    assert_int_equal(rt_sets_hear(&j->sets, 2, &message), 0);
    free(message.data);
    decide(j, texts);
    assert_string_equal(texts[1], "2:is ");
    free_job(j);
}

static void hear_of_what_is_no_announcement_fails(void **state)
{
    struct job *j = new_job();
    struct rt_bytes message = {0};
    struct rt_tensor t = tensor(RT_ALLREDUCE, 1, "a");
    add(j);
    assert_int_equal(say(j, 1, tensor(RT_ALLREDUCE, 2, "later")), -EPROTO);
    put(&message, &t);
    for (size_t n = message.n - 1; n > 0; n--) {
        const struct rt_bytes piece = {.data = message.data, .n = n};
        assert_int_equal(rt_sets_hear(&j->sets, 1, &piece), -EPROTO);
    }
    assert_int_equal(rt_sets_hear(&j->sets, 1, &message), 0);
    assert_int_equal(rt_sets_hear(&j->sets, 1, &message), -EPROTO); /* once more */
    free(message.data);
    free_job(j);
}

static void get_order_of_a_set_without_this_rank_fails(void **state)
{
    struct job *j = new_job();
    struct rt_order order;
    struct rt_set *set;
    const int32_t ids[] = {1, 2, -1};
    add(j);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct rt_order empty = {0};
        struct rt_bytes message = {0};
        rt_put(&message, &ids[i], sizeof ids[i]);
        rt_put_order(&message, &empty);
        struct rt_reader reader = {message.data, message.n};
        assert_int_equal(rt_sets_get_order(&j->sets, &reader, &order, &set), -EPROTO);
        free(message.data);
    }
    free_job(j);
}

/* ---- this rank's own ---- */

static struct rt_operation *hand_over(struct job *j, int set, const char *name, int *ret_handle)
{
    struct rt_operation *o = rt_operation_new(RT_ALLREDUCE, name);
    o->tensor.set = set;
    *ret_handle = rt_table_add(j->sets.table, o);
    assert_true(*ret_handle >= 0);
    return o;
}

static void expect_end(struct job *j, int handle, int result, const char *text)
{
    char *said = NULL;
    assert_int_equal(rt_table_wait(j->sets.table, handle, &said), result);
    assert_string_equal(said, text);
    free(said);
}

static void announce_says_what_is_handed_over_but_in_sets_that_are_gone(void **state)
{
    struct job *j = new_job();
    struct rt_bytes message = {0};
    int handle, gone;
    hand_over(j, 0, "a", &handle);
    hand_over(j, 7, "b", &gone);
    assert_int_equal(rt_sets_announce(&j->sets, &message), 0);
    assert_int_equal(j->sets.under_way, 1);
    expect_end(j, gone, -ENOENT, "process set 7 was removed");
    assert_int_equal(rt_sets_hear(&j->sets, 0, &message), 0);
    assert_int_equal(rt_table_poll(j->sets.table, handle), 0);
    message.n = 0;
    assert_int_equal(rt_sets_announce(&j->sets, &message), 0);
    assert_int_equal(message.n, 0);
    free(message.data);
    free_job(j);
}

static void announce_says_of_the_set_of_all_last_that_this_rank_shuts_down(void **state)
{
    struct job *j = new_job();
    struct rt_bytes message = {0};
    int32_t first;
    int handle;
    add(j);
    j->sets.list[1]->member = rt_member_new(); /* as if this rank were in it */
    struct rt_operation *o = rt_operation_new(RT_SHUTDOWN, "rt.shutdown");
    assert_true(rt_table_add(j->sets.table, o) >= 0);
    hand_over(j, 1, "x", &handle);
    assert_int_equal(rt_sets_announce(&j->sets, &message), 0);
    memcpy(&first, message.data, sizeof first);
    assert_int_equal(first, 1);
    free(message.data);
    free_job(j);
}

static void remove_fails_what_this_rank_has_in_the_set(void **state)
{
    struct job *j = new_job();
    struct rt_bytes message = {0};
    int other, announced, fresh;
    add(j);
    j->sets.list[1]->member = rt_member_new(); /* as if this rank were in it */
    hand_over(j, 0, "x", &other);
    hand_over(j, 1, "x", &announced);
    assert_int_equal(rt_sets_announce(&j->sets, &message), 0);
    hand_over(j, 1, "y", &fresh);
    assert_int_equal(j->sets.under_way, 2);
    assert_int_equal(take_away(j, 1), 0);
    assert_int_equal(j->sets.under_way, 1);
    expect_end(j, announced, -ENOENT, "process set 1 was removed");
    expect_end(j, fresh, -ENOENT, "process set 1 was removed");
    assert_int_equal(rt_table_poll(j->sets.table, other), 0);
    free(message.data);
    free_job(j);
}

static void stalls_are_said_and_given_up_in_all_sets(void **state)
{
    struct job *j = new_job();
    struct rt_bytes text = {0};
    char texts[RANKS][400];
    add(j);
    assert_int_equal(say(j, 1, tensor(RT_ALLREDUCE, 1, "a")), 0);
    assert_int_equal(say(j, 1, tensor(RT_ALLREDUCE, 0, "b")), 0);
    rt_sets_set_time(&j->sets, 2000000000);
    assert_int_equal(rt_sets_say_stalled(&j->sets, 1000000000, &text), 2);
    assert_string_equal((char *)text.data, "  b: for 2.0 s for rank 0, rank 2\n"
                                           "  a of process set 1: for 2.0 s for rank 2\n");
    free(text.data);
    assert_int_equal(rt_sets_give_up(&j->sets, 1000000000), 0);
    decide(j, texts);
    assert_string_equal(texts[1], "0:b!-110 1:a!-110 ");
    free_job(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_gives_ascending_numbers_and_tags_that_no_other_set_has),
        cmocka_unit_test(copy_ranks_gives_as_many_as_there_is_room_for),
        cmocka_unit_test(remove_says_of_which_set_it_fails_and_why),
        cmocka_unit_test(add_that_another_rank_cant_gives_its_reason_and_takes_no_number),
        cmocka_unit_test(add_beyond_what_there_may_be_is_refused),
        cmocka_unit_test(ranks_that_are_not_in_step_change_no_sets),
        cmocka_unit_test(decide_tells_the_ranks_of_each_set_in_one_sequence),
        cmocka_unit_test(decide_ends_a_set_before_its_removal),
        cmocka_unit_test(refused_removal_leaves_the_set_as_it_is),
        cmocka_unit_test(set_that_comes_after_a_rank_left_knows_it),
        cmocka_unit_test(set_hears_who_leaves),
        cmocka_unit_test(last_order_comes_after_all_sets_orders),
        cmocka_unit_test(hear_passes_over_what_was_said_of_a_removed_set),
        cmocka_unit_test(hear_of_what_is_no_announcement_fails),
        cmocka_unit_test(get_order_of_a_set_without_this_rank_fails),
        cmocka_unit_test(announce_says_what_is_handed_over_but_in_sets_that_are_gone),
        cmocka_unit_test(announce_says_of_the_set_of_all_last_that_this_rank_shuts_down),
        cmocka_unit_test(remove_fails_what_this_rank_has_in_the_set),
        cmocka_unit_test(stalls_are_said_and_given_up_in_all_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
