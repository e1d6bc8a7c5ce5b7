/* Job control's words survive packing, and every reason has a text. */
#include "support.h"

#include "base/prng.h"
#include "core/job.h"

enum {
    ROUNDS = 10000,
};

static const uint64_t seed = 17;

static void spot_unpack__returns_what_was_packed(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 0);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t word = (uint32_t)gw_prng_next(&prng), workers;
        struct gw_job_spot spot = gw_job_spot_unpack(word, &workers);
        assert_int_equal(gw_job_spot_pack(&spot, workers), word & UINT32_MAX >> 2);
    }
    struct gw_job_spot spot = {.level = 2, .partials = 1, .fan_in = 32, .above = {31, 7}};
    uint32_t workers;
    struct gw_job_spot same = gw_job_spot_unpack(gw_job_spot_pack(&spot, GW_WORLD_MAX), &workers);
    assert_memory_equal(&same, &spot, sizeof(spot));
    assert_int_equal(workers, GW_WORLD_MAX);
}

static void assert_same_terms(const struct gw_job_terms *a, const struct gw_job_terms *b)
{
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->world, b->world);
    assert_int_equal(a->values, b->values);
    assert_int_equal(a->aggregators, b->aggregators);
    assert_int_equal(a->level, b->level);
    assert_int_equal(a->position, b->position);
    assert_memory_equal(a->above, b->above, sizeof(a->above));
    assert_int_equal(a->window, b->window);
    assert_int_equal(a->indexing, b->indexing);
    assert_int_equal(a->hashing, b->hashing);
    assert_int_equal(a->notice, b->notice);
}

static void terms_unpack__returns_what_was_packed(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 1);
    for (int i = 0; i < ROUNDS; i++) {
        struct gw_job_terms terms = {
            .rank = (uint16_t)gw_prng_below(&prng, GW_WORLD_MAX),
            .world = (uint16_t)(1 + gw_prng_below(&prng, GW_WORLD_MAX)),
            .values = (uint16_t)gw_prng_next(&prng),
            .aggregators = (uint16_t)gw_prng_next(&prng),
            .level = (uint8_t)gw_prng_below(&prng, 4),
            .position = (uint8_t)gw_prng_below(&prng, 32),
            .above = {(uint8_t)gw_prng_below(&prng, 32), (uint8_t)gw_prng_below(&prng, 32)},
            .window = (uint16_t)gw_prng_next(&prng),
            .hashing = (uint8_t)gw_prng_below(&prng, 2),
            .indexing = (uint8_t)gw_prng_below(&prng, 4),
            .notice = (uint8_t)gw_prng_below(&prng, 16),
        };
        uint32_t word[3];
        gw_job_terms_pack(&terms, word);
        struct gw_job_terms same = gw_job_terms_unpack(word);
        assert_same_terms(&terms, &same);
    }
}

/* Whatever the words are, what comes out can be packed: they come from the network. */
static void terms_unpack__stays_in_range(void **state)
{
    (void)state;
    uint32_t word[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX}, again[3];
    struct gw_job_terms terms = gw_job_terms_unpack(word);
    gw_job_terms_pack(&terms, again);
    struct gw_job_terms same = gw_job_terms_unpack(again);
    assert_same_terms(&terms, &same);
    assert_int_equal(terms.world, GW_WORLD_MAX);
    assert_int_equal(terms.level, 3);
    assert_int_equal(terms.position, 31);
    assert_int_equal(terms.notice, 15);
}

static void reason_text__differs_for_every_reason(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GW_JOB_REASONS; i++) {
        const char *text = gw_job_reason_text((enum gw_job_reason)i);
        assert_non_null(text);
        assert_true(strlen(text) > 0 && text[strlen(text) - 1] != '.');
        for (uint32_t j = 0; j <= GW_JOB_REASONS; j++) /* the last one is unknown */
            if (j != i)
                assert_string_not_equal(text, gw_job_reason_text((enum gw_job_reason)j));
    }
}

/* Of a job's parts no two have one number, and all are of its key; two keys never have one. */
static void job_number__is_of_one_key(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 2);
    for (int round = 0; round < ROUNDS / 10; round++) {
        uint32_t key = (uint32_t)gw_prng_next(&prng), name = (uint32_t)gw_prng_next(&prng);
        uint32_t numbers[2 * GW_JOB_SHARDS_MAX], job = gw_job_number(key, name);
        for (uint32_t i = 0; i < 2 * GW_JOB_SHARDS_MAX; i++) {
            uint32_t number = gw_job_shard(job, i / 2);
            numbers[i] = i % 2 ? gw_job_shard_direct(number) : number;
            assert_true(gw_job_has_shard(job, numbers[i]));
            assert_int_equal(gw_job_key(numbers[i]), gw_job_key(job));
            for (uint32_t k = 0; k < i; k++)
                assert_int_not_equal(numbers[i], numbers[k]);
            assert_false(gw_job_has_shard(gw_job_number(key + 1, name), numbers[i]));
        }
        assert_int_equal(numbers[0], job);
    }
    assert_int_not_equal(gw_job_number(0, 0), 0);
    assert_int_not_equal(gw_job_number(0, UINT32_C(1) << GW_JOB_NAME_BITS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_number__is_of_one_key),
        cmocka_unit_test(spot_unpack__returns_what_was_packed),
        cmocka_unit_test(terms_unpack__returns_what_was_packed),
        cmocka_unit_test(terms_unpack__stays_in_range),
        cmocka_unit_test(reason_text__differs_for_every_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
