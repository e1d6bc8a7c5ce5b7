/*
 * Every schedule, of every kind, number of workers and root, played over real numbers: who is to
 * have results has them, what is sent is awaited under the same name, and as many bytes travel as
 * the papers say.
 */
#include "support.h"

#include "core/coll/coll.h"

enum {
    N_MAX = 33,
    COUNT_MAX = 130,
};

/* What a worker has of an element. */
struct element {
    uint64_t value;
    uint64_t passing; /* where own values stay as they are: a sum, for the next step to send */
    enum life {
        NONE,
        OWN,  /* its own value, with what has been added to it */
        LEFT, /* that has been sent off to be added elsewhere: only the result may come */
        DONE, /* the result or, where nothing is added, the value */
    } life;
};

struct message {
    uint32_t to;
    bool is_sent;
    uint64_t first, count;
    uint64_t values[COUNT_MAX];
};

struct play {
    const struct gw_coll_ops *coll;
    uint32_t n, root, count;
    uint32_t at[N_MAX];     /* next step of each worker */
    bool has_sent[N_MAX];   /* what that step sends */
    uint64_t moved[N_MAX];  /* elements sent */
    uint64_t largest;       /* of any step */
    uint32_t passed[N_MAX]; /* the step that sends what is passing */
    struct element vectors[N_MAX][COUNT_MAX];
    struct message messages[N_MAX][2 * N_MAX]; /* of each sender, by round */
};

static uint64_t own_value(uint32_t rank, uint64_t i)
{
    return (rank + 1) * UINT64_C(1000003) + i * UINT64_C(7919);
}

static uint32_t owner_of(const struct play *p, uint64_t i)
{
    uint32_t rank = 0;
    while (gw_coll_chunk(rank + 1, p->n, p->count) <= i)
        rank++;
    return rank;
}

static bool adds(const struct play *p)
{
    return p->coll->kind != GW_COLL_ALLGATHER && p->coll->kind != GW_COLL_BROADCAST;
}

/* Whether the worker has the element before, and after. */
static bool has_before(const struct play *p, uint32_t rank, uint64_t i)
{
    if (p->coll->kind == GW_COLL_ALLGATHER)
        return owner_of(p, i) == rank;
    return p->coll->kind != GW_COLL_BROADCAST || rank == p->root;
}

static bool has_after(const struct play *p, uint32_t rank, uint64_t i)
{
    if (p->coll->kind == GW_COLL_REDUCE_SCATTER)
        return owner_of(p, i) == rank;
    return p->coll->kind != GW_COLL_REDUCE || rank == p->root;
}

static uint64_t result_of(const struct play *p, uint64_t i)
{
    uint64_t sum = 0;
    for (uint32_t rank = 0; rank < p->n; rank++)
        if (has_before(p, rank, i))
            sum += own_value(rank, i);
    return sum;
}

/* What a step sends is there and has not been sent off before. */
static void send(struct play *p, uint32_t rank, const struct gw_coll_step *step)
{
    struct message *message = &p->messages[rank][step->round];
    bool is_passed = p->at[rank] != 0 && p->passed[rank] == p->at[rank];
    assert_in_range(step->round, 0, p->coll->rounds(p->n) - 1);
    assert_false(message->is_sent);
    *message = (struct message){step->to, true, step->send_first, step->send_count, {0}};
    for (uint64_t i = 0; i < step->send_count; i++) {
        struct element *element = &p->vectors[rank][step->send_first + i];
        message->values[i] = is_passed ? element->passing : element->value;
        assert_true(element->life == DONE || element->life == (is_passed ? LEFT : OWN));
        if (element->life == OWN && !p->coll->exchanges)
            element->life = LEFT;
    }
    p->moved[rank] += step->send_count;
    if (p->largest < step->send_count)
        p->largest = step->send_count;
}

/* An element is added, or replaced, when it is its turn. */
static void take(struct play *p, uint32_t rank, uint64_t i, uint64_t arrived,
                 enum gw_coll_merge merge)
{
    struct element *element = &p->vectors[rank][i];
    bool keeps_own = gw_coll_keeps_own(p->coll->kind);
    if (merge == GW_COLL_COPY) {
        assert_int_equal(element->life, adds(p) ? LEFT : NONE);
        *element = (struct element){.value = arrived, .life = DONE};
        return;
    }
    assert_int_equal(element->life, OWN);
    if (merge == GW_COLL_COMBINE && keeps_own) {
        element->passing = element->value + arrived;
        element->life = LEFT;
        return;
    }
    element->value += arrived;
    if (merge == GW_COLL_COMPLETE)
        element->life = DONE;
}

static void receive(struct play *p, uint32_t rank, const struct gw_coll_step *step)
{
    const struct message *message = &p->messages[step->from][step->round];
    assert_int_equal(message->to, rank);
    assert_int_equal(message->first, step->recv_first);
    assert_int_equal(message->count, step->recv_count);
    for (uint64_t i = 0; i < message->count; i++)
        take(p, rank, message->first + i, message->values[i], step->merge);
    if (!gw_coll_keeps_own(p->coll->kind) || step->merge != GW_COLL_COMBINE)
        return;
    /* It is sent on by the next step, just so. */
    struct gw_coll_step next = p->coll->step(rank, p->n, p->root, p->at[rank] + 1, p->count);
    assert_true(p->at[rank] + 1 < p->coll->steps(p->n));
    assert_int_equal(next.send_first, step->recv_first);
    assert_int_equal(next.send_count, step->recv_count);
    p->passed[rank] = p->at[rank] + 1;
}

/* Moves a worker on by what it can do; false: nothing. Empty messages are none. */
static bool move(struct play *p, uint32_t rank)
{
    if (p->at[rank] == p->coll->steps(p->n))
        return false;
    struct gw_coll_step step = p->coll->step(rank, p->n, p->root, p->at[rank], p->count);
    bool has_moved = !p->has_sent[rank];
    assert_in_range(step.from, 0, p->n - 1);
    assert_in_range(step.to, 0, p->n - 1);
    assert_int_not_equal(step.from, rank);
    assert_int_not_equal(step.to, rank);
    assert_true(step.recv_first + step.recv_count <= p->count);
    assert_true(step.send_first + step.send_count <= p->count);
    if (!p->has_sent[rank] && step.send_count)
        send(p, rank, &step);
    p->has_sent[rank] = true;
    if (step.recv_count && !p->messages[step.from][step.round].is_sent)
        return has_moved;
    if (step.recv_count)
        receive(p, rank, &step);
    p->at[rank]++;
    p->has_sent[rank] = false;
    return true;
}

static void play(const struct gw_coll_ops *coll, uint32_t n, uint32_t root, uint32_t count)
{
    static struct play p;
    p = (struct play){.coll = coll, .n = n, .root = root, .count = count};
    for (uint32_t rank = 0; rank < n; rank++)
        for (uint32_t i = 0; i < count; i++)
            if (has_before(&p, rank, i))
                p.vectors[rank][i] =
                    (struct element){.value = own_value(rank, i), .life = adds(&p) ? OWN : DONE};
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (uint32_t rank = n; rank-- > 0;)
            has_moved |= move(&p, rank);
    }
    assert_int_equal(coll->largest(n, count), p.largest);
    uint64_t moved = 0;
    for (uint32_t rank = 0; rank < n; rank++) {
        assert_int_equal(p.at[rank], coll->steps(n));
        for (uint32_t i = 0; i < count; i++) {
            const struct element *element = &p.vectors[rank][i];
            assert_int_equal(element->life, has_after(&p, rank, i) ? DONE : LEFT);
            if (has_after(&p, rank, i))
                assert_int_equal(element->value, result_of(&p, i));
        }
        moved += p.moved[rank];
        /* All who do not exchange are so thrifty: exactly if it divides. */
        if (coll->exchanges)
            assert_int_equal(p.moved[rank], coll->steps(n) * (uint64_t)count);
        else if (coll->kind == GW_COLL_ALLREDUCE && count % n == 0)
            assert_int_equal(p.moved[rank], 2 * (n - 1) * (uint64_t)count / n);
    }
    uint64_t ways = coll->kind == GW_COLL_ALLREDUCE ? 2 : 1;
    if (!coll->exchanges)
        assert_int_equal(moved, ways * (n - 1) * count);
}

static void play_all(const struct gw_coll_ops *coll, uint32_t n, uint32_t roots)
{
    static const uint32_t counts[] = {0, 1, 2, 7, 32, 64, 99, COUNT_MAX};
    for (uint32_t root = 0; root < roots; root++)
        for (uint32_t c = 0; c < GW_COUNT_OF(counts); c++)
            play(coll, n, root, counts[c]);
}

static void coll__every_all_reduce_sums(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < gw_coll_registry.count; i++) {
        const struct gw_coll_ops *coll = (const struct gw_coll_ops *)gw_coll_registry.algos[i];
        uint32_t allowed = 0;
        assert_int_equal(coll->kind, GW_COLL_ALLREDUCE);
        for (uint32_t n = 2; n <= N_MAX; n++) {
            if (!coll->allows(n))
                continue;
            allowed++;
            play_all(coll, n, 1);
        }
        assert_true(allowed >= 5); /* the powers of two at least */
        assert_false(coll->allows(1));
    }
}

static void coll__every_kind_does_what_it_is_called(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < GW_COLL_KINDS; kind++) {
        const struct gw_coll_ops *coll = gw_coll_for(kind);
        bool has_root = kind == GW_COLL_BROADCAST || kind == GW_COLL_REDUCE;
        assert_int_equal(coll->kind, kind);
        assert_false(coll->allows(1));
        for (uint32_t n = 2; n <= 21; n++) {
            assert_true(coll->allows(n));
            play_all(coll, n, has_root ? n : 1);
        }
    }
}

/* Who the peers of a step are depends on neither root nor count. */
static void coll__every_kind_goes_up_the_ranks(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < GW_COLL_KINDS; kind++)
        for (uint32_t n = 2; n <= 9; n++)
            for (uint32_t root = 0; root < n; root++)
                for (uint32_t rank = 0; rank < n; rank++)
                    for (uint32_t at = 0; at < gw_coll_for(kind)->steps(n); at++) {
                        struct gw_coll_step step =
                            gw_coll_for(kind)->step(rank, n, root, at, root * at);
                        assert_int_equal(step.to, (rank + 1) % n);
                        assert_int_equal(step.from, (rank + n - 1) % n);
                    }
}

static void coll__steps_are_as_many_as_stated(void **state)
{
    (void)state;
    const struct gw_coll_ops *ring =
        (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "ring");
    const struct gw_coll_ops *butterfly =
        (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "halving-doubling");
    assert_ptr_equal(ring, gw_coll_for(GW_COLL_ALLREDUCE));
    assert_non_null(butterfly);
    assert_int_equal(ring->steps(8), 14);
    assert_int_equal(butterfly->steps(8), 6);
    assert_false(butterfly->allows(6));
    assert_int_equal(gw_coll_doubling.steps(8), 3);
    assert_int_equal(gw_coll_for(GW_COLL_ALLGATHER)->steps(8), 7);
    assert_int_equal(gw_coll_for(GW_COLL_REDUCE_SCATTER)->rounds(8), 7);
    assert_int_equal(gw_coll_for(GW_COLL_BROADCAST)->rounds(8), 1);
    assert_int_equal(gw_coll_for(GW_COLL_REDUCE)->relays(8), 6);
}

/* Steps that may be moved side by side send nothing that another of them brings. */
static void coll__steps_apart_need_nothing_of_each_other(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (uint32_t i = 0; i < gw_coll_registry.count; i++) {
        const struct gw_coll_ops *coll = (const struct gw_coll_ops *)gw_coll_registry.algos[i];
        for (uint32_t n = 2; n <= N_MAX && coll->apart; n++) {
            uint32_t apart = coll->apart(n), count = 3 * n + 1;
            assert_int_equal(coll->steps(n) % apart, 0);
            found++;
            for (uint32_t a = 0; a < coll->steps(n) * coll->steps(n); a++) {
                uint32_t at = a / coll->steps(n), other = a % coll->steps(n);
                struct gw_coll_step sends = coll->step(n / 2, n, 0, at, count);
                struct gw_coll_step brings = coll->step(n / 2, n, 0, other, count);
                if (at / apart == other / apart)
                    assert_true(sends.send_first + sends.send_count <= brings.recv_first ||
                                brings.recv_first + brings.recv_count <= sends.send_first);
            }
        }
    }
    assert_true(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll__every_all_reduce_sums),
        cmocka_unit_test(coll__every_kind_does_what_it_is_called),
        cmocka_unit_test(coll__every_kind_goes_up_the_ranks),
        cmocka_unit_test(coll__steps_are_as_many_as_stated),
        cmocka_unit_test(coll__steps_apart_need_nothing_of_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
