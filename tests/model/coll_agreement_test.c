/*
 * Ranks agree on what is missing when they are more than send to each other: by a ring, around
 * which a mask travels in pieces of a byte or none. A chain of so many ranks loses something of
 * each word of the mask, so that none may be forgotten.
 */
#define COLL_RUN_WORLD_MAX 64
#include "coll_run_fixture.h"

#include "base/bits.h"

enum {
    FRAGMENTS = 300, /* the last word of the mask is not full */
    WORDS = 5,
    VALUES = MTU / sizeof(uint32_t), /* of a fragment */
    COUNT = FRAGMENTS * VALUES - 3,
    UNTOUCHED = 0x77,
};

struct have {
    uint32_t *out;
    uint64_t arrived[WORDS];
    uint16_t counts[FRAGMENTS];
};

static uint32_t value_of(uint32_t element)
{
    return element * 2654435761u | 1;
}

static void begin(struct model *m, uint32_t rank, struct have *have)
{
    const struct gw_parts parts = {
        .bound_pull = GW_Q16_ONE / 2, .arrived = have->arrived, .counts = have->counts};
    have->out = gw_test_take(COUNT * sizeof(*have->out));
    memset(have->out, UNTOUCHED, COUNT * sizeof(*have->out));
    for (uint32_t i = 0; rank == 0 && i < COUNT; i++)
        have->out[i] = value_of(i);
    const struct gw_coll_call call = {
        .coll = gw_coll_for(GW_COLL_BROADCAST),
        .tensor = {.in = rank == 0 ? have->out : NULL,
                   .out = have->out,
                   .count = COUNT,
                   .type = GW_DTYPE_I32,
                   .tag = m->tag},
        .parts = &parts,
        .fragment = VALUES,
    };
    assert_int_equal(gw_coll_run_start(m->workers[rank].run, &call, gw_mem_now(m->mem)), GW_OK);
}

/* What the mask says is there, and nothing else. Returns how many fragments are missing. */
static uint64_t check(const struct have *have)
{
    uint64_t missing = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        bool is_there = gw_bit_is_set(have->arrived, i / VALUES);
        assert_int_equal(have->out[i], is_there ? value_of(i) : 0);
        assert_int_equal(have->counts[i / VALUES], is_there);
        missing += i % VALUES == 0 && !is_there;
    }
    return missing;
}

static void coll_agreement__of_many_ranks_forgets_no_word(void **state)
{
    static const uint32_t worlds[] = {GW_COLL_AGREEMENT_DIRECT + 1, COLL_RUN_WORLD_MAX};
    static struct have haves[COLL_RUN_WORLD_MAX];
    (void)state;
    for (uint32_t i = 0; i < GW_COUNT_OF(worlds); i++) {
        const struct setup setup = {.coll = "ring",
                                    .world = worlds[i],
                                    .segment = FRAGMENTS * MTU,
                                    .flows = 1,
                                    .stall = GW_S,
                                    .takes_parts = true};
        struct model m;
        model_open(&m, &setup);
        model_worsen(&m);
        for (uint32_t rank = 0; rank < worlds[i]; rank++)
            begin(&m, rank, &haves[rank]);
        model_run(&m);
        for (uint32_t word = 0; word < WORDS; word++) /* so that each word matters */
            assert_in_range(__builtin_popcountll(haves[0].arrived[word]), 1, 63);
        for (uint32_t rank = 0; rank < worlds[i]; rank++) {
            const struct gw_coll_run_status status = gw_coll_run_status(m.workers[rank].run);
            assert_int_equal(status.state, GW_COLL_RUN_DONE);
            assert_int_equal(status.missing, check(&haves[rank]));
            assert_in_range(status.missing, WORDS, FRAGMENTS / 2);
            assert_memory_equal(haves[rank].arrived, haves[0].arrived, sizeof(haves[0].arrived));
            free(haves[rank].out);
        }
        model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coll_agreement__of_many_ranks_forgets_no_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
