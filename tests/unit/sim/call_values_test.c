/* The model of what calls carry: it accepts what is right, and notices a single wrong element. */
#include "sim/call_values.h"
#include "support.h"

enum {
    WORLD = 5,
    COUNT = 337, /* more than are worked on at a time */
};

static struct gw_sim_duty duty_of(const struct gw_call_spec *spec, uint32_t rank)
{
    struct gw_sim_duty duty = {
        .spec = spec, .kind = spec->kind, .rank = rank, .world = WORLD, .seed = 3, .iteration = 2};
    gw_sim_duty_fill(&duty);
    return duty;
}

static bool is_right(const struct gw_sim_duty *duty)
{
    void *sums = gw_sim_duty_sums(duty);
    bool right = gw_sim_duty_is_right(duty, sums);
    free(sums);
    return right;
}

static void all_gather__is_what_all_gave(void **state)
{
    (void)state;
    const struct gw_call_spec spec = {
        .kind = GW_CALL_ALLGATHER, .count = COUNT, .type = GW_DTYPE_I32};
    struct gw_sim_duty duty = duty_of(&spec, 1);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct gw_sim_duty other = duty_of(&spec, rank);
        memcpy((int32_t *)duty.out + rank * COUNT, other.in, sizeof(int32_t) * COUNT);
        gw_sim_duty_free(&other);
    }
    assert_true(is_right(&duty));
    ((int32_t *)duty.out)[WORLD * COUNT - 1] ^= 1;
    assert_false(is_right(&duty));
    gw_sim_duty_free(&duty);
}

/* Exact sums of int32, and of float32 whatever the order. */
static void all_reduce__is_the_sum_of_all(void **state)
{
    (void)state;
    for (uint32_t is_float = 0; is_float < 2; is_float++) {
        const struct gw_call_spec spec = {.kind = GW_CALL_ALLREDUCE,
                                          .count = COUNT,
                                          .type = is_float ? GW_DTYPE_F32 : GW_DTYPE_I32};
        struct gw_sim_duty duty = duty_of(&spec, 0);
        bool is_all_zero = true;
        for (uint32_t i = WORLD; i-- > 0;) {
            struct gw_sim_duty other = duty_of(&spec, i);
            for (uint32_t e = 0; e < COUNT; e++) {
                if (is_float)
                    ((float *)duty.out)[e] += ((float *)other.in)[e];
                else
                    ((int32_t *)duty.out)[e] += ((int32_t *)other.in)[e];
                is_all_zero &= ((int32_t *)other.in)[e] == 0;
            }
            gw_sim_duty_free(&other);
        }
        assert_false(is_all_zero);
        assert_true(is_right(&duty));
        ((int32_t *)duty.out)[COUNT / 2] ^= 1;
        assert_false(is_right(&duty));
        gw_sim_duty_free(&duty);
    }
}

static void reduce_scatter__is_the_own_part(void **state)
{
    (void)state;
    const struct gw_call_spec spec = {
        .kind = GW_CALL_REDUCE_SCATTER, .count = COUNT, .type = GW_DTYPE_I64, .op = GW_OP_MAX};
    struct gw_sim_duty duty = duty_of(&spec, 3);
    int64_t *out = duty.out;
    for (uint32_t e = 0; e < COUNT; e++)
        out[e] = INT64_MIN;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct gw_sim_duty other = duty_of(&spec, rank);
        const int64_t *in = (const int64_t *)other.in + 3 * COUNT;
        for (uint32_t e = 0; e < COUNT; e++)
            out[e] = in[e] > out[e] ? in[e] : out[e];
        gw_sim_duty_free(&other);
    }
    assert_true(is_right(&duty));
    out[0]--;
    assert_false(is_right(&duty));
    gw_sim_duty_free(&duty);
}

/* A value that has seen three pushes, and one that has seen a part of the third. */
static void pull__counts_pushes(void **state)
{
    (void)state;
    const struct gw_call_spec push = {.kind = GW_CALL_PUSH, .count = COUNT, .key = 8};
    const struct gw_call_spec pull = {.kind = GW_CALL_PULL, .count = COUNT, .key = 8};
    struct gw_sim_duty duty = duty_of(&pull, 0);
    uint64_t pushes;
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct gw_sim_duty other = duty_of(&push, rank);
        for (uint32_t e = 0; e < COUNT; e++)
            ((float *)duty.out)[e] += ((float *)other.in)[e];
        gw_sim_duty_free(&other);
    }
    assert_true(gw_sim_duty_pushes(&duty, &pushes));
    assert_int_equal(pushes, 3);
    ((float *)duty.out)[COUNT - 1] *= 2;
    assert_false(gw_sim_duty_pushes(&duty, &pushes));
    gw_sim_duty_free(&duty);
}

/* A message is not what another one was. */
static void contents__differ(void **state)
{
    (void)state;
    const struct gw_call_spec spec = {.kind = GW_CALL_SEND, .count = COUNT, .from = 2, .to = 4};
    struct gw_sim_duty sent = duty_of(&spec, 2);
    struct gw_sim_duty got = {.spec = &spec,
                              .kind = GW_CALL_RECEIVE,
                              .rank = 4,
                              .world = WORLD,
                              .seed = 3,
                              .iteration = 2};
    gw_sim_duty_fill(&got);
    memcpy(got.out, sent.in, COUNT);
    assert_true(is_right(&got));
    got.iteration++;
    assert_false(is_right(&got));
    gw_sim_duty_free(&sent);
    gw_sim_duty_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gather__is_what_all_gave),
        cmocka_unit_test(all_reduce__is_the_sum_of_all),
        cmocka_unit_test(reduce_scatter__is_the_own_part),
        cmocka_unit_test(pull__counts_pushes),
        cmocka_unit_test(contents__differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
