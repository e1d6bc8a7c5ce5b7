/*
 * Collectives that may lose a part, over links that lose, double and delay packets. Each rank
 * brings a bit of its own in every element, so that a sum says whose values it has: that must be as
 * many as its count, and the same everywhere; and nobody misses more than the bounds.
 */
#include "coll_run_fixture.h"

#include "base/bits.h"

enum {
    FRAGMENTS_MAX = WORLD_MAX * (COUNT_MAX * ELEMENT_MAX / MTU + 2),
    WORDS = FRAGMENTS_MAX / 64 + 1,
    SHARES = 840, /* what averages of up to 8 divide */
    UNTOUCHED = 0x77,
};

/* What is asked, and how. */
struct ask {
    enum gw_coll_kind kind;
    const char *coll; /* of an all-reduce; or NULL */
    enum gw_dtype type;
    enum gw_op op;
    uint64_t count;
    gw_q16 bound, bound_pull;
    bool keeps_own, in_place;
};

/* What a worker has in the end. */
struct have {
    unsigned char *in, *out;
    uint64_t arrived[WORDS];
    uint16_t counts[FRAGMENTS_MAX];
};

struct outcome {
    uint64_t results, contributions; /* missing */
};

static struct have haves[WORLD_MAX];

static uint64_t fragments_of(const struct model *m, const struct ask *ask)
{
    uint64_t unit = MTU / gw_dtype_size(ask->type);
    return (ask->count + unit - 1) / unit * (ask->kind == GW_COLL_ALLGATHER ? m->setup.world : 1);
}

/* `number` in a type; halves and quarters are not asked for. */
static void put(enum gw_dtype type, double number, unsigned char *to)
{
    int64_t i64 = (int64_t)number;
    int32_t i32 = (int32_t)i64;
    switch (type) {
    case GW_DTYPE_I32:
        memcpy(to, &i32, sizeof(i32));
        break;
    case GW_DTYPE_F64:
        memcpy(to, &number, sizeof(number));
        break;
    case GW_DTYPE_I64:
        memcpy(to, &i64, sizeof(i64));
        break;
    case GW_DTYPE_U8:
        *to = (unsigned char)i64;
        break;
    default:
        gw_kernels_best(0)->narrow_real[type](to, &number, 1, 1);
    }
}

/* What the ranks of a set make of an element. */
static void put_result(const struct ask *ask, uint32_t set, unsigned char *to)
{
    double sum = set * (ask->op == GW_OP_AVERAGE ? (double)SHARES : 1);
    bool is_small = ask->type == GW_DTYPE_F16 || ask->type == GW_DTYPE_BF16;
    if (ask->op == GW_OP_AVERAGE)
        sum = (is_small ? set : sum) / __builtin_popcount(set);
    put(ask->type, sum, to);
}

/* The set whose result the element is, of `count` ranks; 0: there is none. */
static uint32_t set_of(const struct model *m, const struct ask *ask, uint32_t count,
                       const unsigned char *element)
{
    unsigned char expected[ELEMENT_MAX];
    for (uint32_t set = 1; set < 1u << m->setup.world; set++) {
        if ((uint32_t)__builtin_popcount(set) != count)
            continue;
        put_result(ask, set, expected);
        if (memcmp(element, expected, gw_dtype_size(ask->type)) == 0)
            return set;
    }
    return 0;
}

static void fill(const struct ask *ask, uint32_t rank, unsigned char *to, uint64_t count)
{
    bool is_small = ask->type == GW_DTYPE_F16 || ask->type == GW_DTYPE_BF16;
    double scale = ask->op == GW_OP_AVERAGE && !is_small ? SHARES : 1;
    for (uint64_t i = 0; i < count; i++)
        put(ask->type, scale * (1u << rank), to + i * gw_dtype_size(ask->type));
}

static const struct gw_coll_ops *ops_of(const struct ask *ask)
{
    return ask->coll ? (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, ask->coll)
                     : gw_coll_for(ask->kind);
}

static bool has_out(const struct ask *ask, uint32_t rank)
{
    return ask->kind != GW_COLL_REDUCE || rank == 0;
}

static bool has_in(const struct ask *ask, uint32_t rank)
{
    return ask->kind != GW_COLL_BROADCAST || rank == 0;
}

static void begin(struct model *m, const struct ask *ask, uint32_t rank)
{
    uint32_t size = gw_dtype_size(ask->type), world = m->setup.world;
    struct have *have = &haves[rank];
    uint64_t in = ask->count * (ask->kind == GW_COLL_REDUCE_SCATTER ? world : 1);
    uint64_t out = ask->count * (ask->kind == GW_COLL_ALLGATHER ? world : 1);
    const struct gw_parts parts = {
        .bound = ask->bound,
        .bound_pull = ask->bound_pull,
        .keeps_own = ask->keeps_own,
        .class = 1,
        .arrived = have->arrived,
        .counts = have->counts,
    };
    have->out = gw_test_take(out * size);
    memset(have->out, UNTOUCHED, out * size);
    have->in = ask->in_place ? have->out : gw_test_take(in * size);
    if (has_in(ask, rank))
        fill(ask, rank, have->in, in);
    const struct gw_coll_call call = {
        .coll = ops_of(ask),
        .tensor = {.in = has_in(ask, rank) ? have->in : NULL,
                   .out = has_out(ask, rank) ? have->out : NULL,
                   .count = ask->count,
                   .type = ask->type,
                   .op = ask->op,
                   .tag = m->tag},
        .parts = &parts,
        .fragment = MTU / size,
    };
    assert_int_equal(gw_coll_run_start(m->workers[rank].run, &call, gw_mem_now(m->mem)), GW_OK);
    if (rank == world - 1)
        m->tag += (uint32_t)gw_coll_run_tags(m->workers[rank].run, &call);
}

/* The fragment of a worker's `out` is what it and its count say; returns the set of ranks in it. */
static uint32_t check_fragment(const struct model *m, const struct ask *ask, uint32_t rank,
                               uint64_t fragment)
{
    const struct have *have = &haves[rank];
    uint32_t size = gw_dtype_size(ask->type), unit = MTU / size, count = have->counts[fragment];
    uint64_t part_units =
        fragments_of(m, ask) / (ask->kind == GW_COLL_ALLGATHER ? m->setup.world : 1);
    uint64_t part = fragment / part_units, at = fragment % part_units * unit;
    uint64_t elements = ask->count - at < unit ? ask->count - at : unit;
    const unsigned char *bytes = have->out + (part * ask->count + at) * size;
    bool is_there = gw_bit_is_set(have->arrived, fragment);
    for (uint64_t i = size; i < elements * size; i++)
        assert_int_equal(bytes[i], bytes[i - size]);
    if (!is_there && !ask->keeps_own) {
        assert_int_equal(count, 0);
        for (uint32_t i = 0; i < size; i++)
            assert_int_equal(bytes[i], 0);
        return 0;
    }
    if (ask->kind == GW_COLL_ALLGATHER || ask->kind == GW_COLL_BROADCAST) {
        assert_int_equal(count, is_there);
        unsigned char expected[ELEMENT_MAX];
        fill(ask, (uint32_t)part, expected, 1);
        if (is_there)
            assert_memory_equal(bytes, expected, size);
        return 0;
    }
    uint32_t set = set_of(m, ask, count, bytes);
    if (!set)
        fail_msg("rank %u, fragment %u: not the values of %u ranks", rank, (uint32_t)fragment,
                 count);
    return set;
}

static void check(const struct model *m, const struct ask *ask, struct outcome *outcome)
{
    uint32_t world = m->setup.world;
    bool is_agreed = !ask->keeps_own && !gw_coll_keeps_own(ask->kind);
    uint64_t fragments = fragments_of(m, ask);
    for (uint32_t rank = 0; rank < world; rank++) {
        const struct have *have = &haves[rank];
        uint64_t missing = 0, without[WORLD_MAX] = {0};
        assert_int_equal(state_of(&m->workers[rank]), GW_COLL_RUN_DONE);
        for (uint64_t i = 0; i < fragments && has_out(ask, rank); i++) {
            uint32_t set = check_fragment(m, ask, rank, i);
            missing += !gw_bit_is_set(have->arrived, i);
            for (uint32_t r = 0; r < world; r++)
                without[r] += set && gw_bit_is_set(have->arrived, i) && !(set >> r & 1);
        }
        assert_int_equal(missing, gw_coll_run_status(m->workers[rank].run).missing);
        assert_true(missing << 16 <= (uint64_t)ask->bound_pull * fragments);
        for (uint32_t r = 0; r < world; r++) {
            if (without[r] << 16 > (uint64_t)ask->bound * fragments)
                fail_msg("rank %u misses %u of %u fragments of rank %u", rank, (uint32_t)without[r],
                         (uint32_t)fragments, r);
            outcome->contributions += without[r];
        }
        outcome->results += missing;
        uint64_t bytes = ask->count * gw_dtype_size(ask->type);
        if (is_agreed) {
            assert_memory_equal(have->arrived, haves[0].arrived,
                                gw_bit_words(fragments) * sizeof(uint64_t));
            assert_memory_equal(have->counts, haves[0].counts, fragments * sizeof(*have->counts));
            assert_memory_equal(have->out, haves[0].out,
                                bytes * (ask->kind == GW_COLL_ALLGATHER ? world : 1));
        }
    }
}

/* A call from start to end. */
static void ask_once(struct model *m, const struct ask *ask, struct outcome *outcome)
{
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        begin(m, ask, rank);
    model_run(m);
    check(m, ask, outcome);
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        free(haves[rank].out);
        if (!ask->in_place)
            free(haves[rank].in);
    }
}

static void open(struct model *m, const char *coll, uint32_t world)
{
    const struct setup setup = {
        .coll = coll, .world = world, .segment = 30 * MTU, .flows = 3, .takes_parts = true};
    model_open(m, &setup);
}

static const char *const colls[] = {"ring", "direct", "halving-doubling"};

/* Every schedule and type, sum and average: replicas are equal and bounds hold. */
static void coll_parts__replicas_are_equal_and_bounds_hold(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++)
        for (uint32_t world = 2; world <= WORLD_MAX; world += world < 4 ? 1 : 2) {
            struct model m;
            if (!((const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, colls[c]))
                     ->allows(world))
                continue;
            open(&m, colls[c], world);
            model_worsen(&m);
            for (enum gw_dtype type = GW_DTYPE_F32; type < GW_DTYPES; type++) {
                struct ask ask = {.coll = colls[c],
                                  .type = type,
                                  .op = (enum gw_op)((world + type) % 2),
                                  .count = 60000 / gw_dtype_size(type) + 700 * world,
                                  .bound = GW_Q16_ONE / 2,
                                  .bound_pull = type % 3 ? GW_Q16_ONE / 2 : 0,
                                  .in_place = world % 2};
                if (!gw_op_exists(ask.op, type))
                    ask.op = GW_OP_SUM;
                ask_once(&m, &ask, &outcome);
            }
            model_close(&m);
        }
    assert_true(outcome.contributions > 1000 && outcome.results > 1000);
}

/* The other kinds, and minimum and maximum of those that came. */
static void coll_parts__every_kind_keeps_its_bounds(void **state)
{
    (void)state;
    for (uint32_t kind = GW_COLL_REDUCE_SCATTER; kind < GW_COLL_KINDS; kind++) {
        struct outcome outcome = {0};
        bool adds = kind == GW_COLL_REDUCE_SCATTER || kind == GW_COLL_REDUCE;
        for (uint32_t world = 2; world <= 6; world += 2) {
            struct model m;
            open(&m, "ring", world);
            model_worsen(&m);
            for (uint32_t i = 0; i < 6; i++) {
                const struct ask ask = {.kind = (enum gw_coll_kind)kind,
                                        .type = i % 2 ? GW_DTYPE_I64 : GW_DTYPE_F32,
                                        .op = i % 2 ? GW_OP_SUM : GW_OP_AVERAGE,
                                        .count = 6000 + 301 * i,
                                        .bound = GW_Q16_ONE / 2,
                                        .bound_pull = GW_Q16_ONE / 2,
                                        .keeps_own = i % 3 == 2};
                ask_once(&m, &ask, &outcome);
            }
            model_close(&m);
        }
        assert_true((adds ? outcome.contributions : outcome.results) > 100);
    }
}

/* Of a result that is missing a worker keeps what it has of it: its own values if they go straight
 * to who sums them, else what has come to be summed with them on the way. */
static void coll_parts__keep_their_own_if_they_are_told_to(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        bool is_direct = i % 2;
        struct outcome outcome = {0};
        struct model m;
        const struct ask ask = {.coll = is_direct ? "direct" : "ring",
                                .type = i / 2 % 2 ? GW_DTYPE_F32 : GW_DTYPE_F64,
                                .op = i / 4 ? GW_OP_AVERAGE : GW_OP_SUM,
                                .count = 30000,
                                .bound = GW_Q16_ONE / 2,
                                .bound_pull = GW_Q16_ONE / 2,
                                .keeps_own = true,
                                .in_place = i / 2 % 2};
        open(&m, ask.coll, 5);
        model_worsen(&m);
        for (uint32_t rank = 0; rank < 5; rank++)
            begin(&m, &ask, rank);
        model_run(&m);
        check(&m, &ask, &outcome);
        assert_true(outcome.results > 10);
        for (uint32_t rank = 0; rank < 5; rank++) {
            uint64_t fragments = fragments_of(&m, &ask);
            for (uint64_t f = 0; f < fragments; f++) {
                uint32_t set = check_fragment(&m, &ask, rank, f);
                if (gw_bit_is_set(haves[rank].arrived, f))
                    continue;
                assert_true(set >> rank & 1);
                assert_true(!is_direct || set == 1u << rank);
            }
            free(haves[rank].out);
            if (!ask.in_place)
                free(haves[rank].in);
        }
        model_close(&m);
    }
}

/* With bounds of 0 nothing is missing whatever is lost, and a short message is never too short. */
static void coll_parts__without_bounds_are_exact(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 249, 250, 251, 4999};
    for (uint32_t c = 0; c < GW_COUNT_OF(colls); c++) {
        struct outcome outcome = {0};
        struct model m;
        open(&m, colls[c], 4);
        model_worsen(&m);
        for (uint32_t i = 0; i < 2 * GW_COUNT_OF(counts); i++) {
            struct ask ask = {.coll = colls[c], .count = counts[i / 2], .keeps_own = i % 2};
            ask_once(&m, &ask, &outcome);
            assert_true(outcome.contributions == 0 && outcome.results == 0);
            ask.bound = ask.bound_pull = GW_Q16_ONE / 2;
            ask_once(&m, &ask, &outcome);
            outcome = (struct outcome){0};
        }
        model_close(&m);
    }
}

/* One worker states other bounds than the rest: what it sends and what it gets keeps to them. */
static void coll_parts__the_stricter_bound_holds(void **state)
{
    (void)state;
    enum { WORLD = 4, STRICT = 2 };
    struct outcome outcome = {0};
    struct model m;
    struct ask ask = {.coll = "direct", .count = 30000, .bound = GW_Q16_ONE / 2};
    const struct ask strict = {.coll = "direct", .count = 30000};
    open(&m, "direct", WORLD);
    model_worsen(&m);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        begin(&m, rank == STRICT ? &strict : &ask, rank);
    model_run(&m);
    check(&m, &ask, &outcome);
    uint64_t fragments = fragments_of(&m, &ask);
    for (uint64_t f = 0; f < fragments; f++) {
        uint32_t set = check_fragment(&m, &ask, 0, f);
        assert_true(set >> STRICT & 1);
        if (f >= STRICT * fragments / WORLD && f < (STRICT + 1) * fragments / WORLD)
            assert_int_equal(set, (1 << WORLD) - 1);
    }
    assert_true(outcome.contributions > 10);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        free(haves[rank].in);
        free(haves[rank].out);
    }
    model_close(&m);
}

/* The others allow that half of the results is missing at all, one worker a 200th: so many are that
 * its call fails, and says that terms differ. */
static void coll_parts__fail_with_more_missing_than_is_allowed(void **state)
{
    (void)state;
    enum { WORLD = 4, STRICT = 2 };
    struct model m;
    struct ask ask = {.coll = "direct", .count = 30000, .bound_pull = GW_Q16_ONE / 2};
    struct ask strict = ask;
    strict.bound_pull = GW_Q16_ONE / 200;
    open(&m, "direct", WORLD);
    model_worsen(&m);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        begin(&m, rank == STRICT ? &strict : &ask, rank);
    model_run(&m);
    struct gw_coll_run_status status = gw_coll_run_status(m.workers[STRICT].run);
    assert_int_equal(status.state, GW_COLL_RUN_FAILED);
    assert_int_equal(status.reason, GW_JOB_BOUND);
    assert_int_equal(status.about, STRICT);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        free(haves[rank].in);
        free(haves[rank].out);
    }
    model_close(&m);
}

/* A worker dies: all others fail, and say who it is, or who waits for it. */
static void coll_parts__fail_when_a_worker_dies(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 12; i++) {
        struct ask ask = {.coll = colls[i % 3],
                          .count = 30000,
                          .bound = GW_Q16_ONE / 2,
                          .bound_pull = GW_Q16_ONE / 2};
        struct model m;
        open(&m, ask.coll, 4);
        model_worsen(&m);
        for (uint32_t rank = 0; rank < 4; rank++)
            begin(&m, &ask, rank);
        gw_time until = gw_time_add(gw_mem_now(m.mem), (i / 3 * 60 + 1) * GW_US);
        while (model_step(&m, until)) {
        }
        m.workers[1].is_dead = true;
        gw_mem_replace(m.mem, 1, NULL, NULL);
        model_run(&m);
        for (uint32_t rank = 0; rank < 4; rank++) {
            if (rank != 1)
                assert_int_equal(state_of(&m.workers[rank]), GW_COLL_RUN_FAILED);
            free(haves[rank].in);
            haves[rank].in = NULL;
        }
        assert_int_equal(gw_coll_run_status(m.workers[0].run).reason, GW_JOB_LOST);
        model_close(&m);
        for (uint32_t rank = 0; rank < 4; rank++)
            free(haves[rank].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_parts__replicas_are_equal_and_bounds_hold),
        cmocka_unit_test(coll_parts__every_kind_keeps_its_bounds),
        cmocka_unit_test(coll_parts__keep_their_own_if_they_are_told_to),
        cmocka_unit_test(coll_parts__without_bounds_are_exact),
        cmocka_unit_test(coll_parts__the_stricter_bound_holds),
        cmocka_unit_test(coll_parts__fail_with_more_missing_than_is_allowed),
        cmocka_unit_test(coll_parts__fail_when_a_worker_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
