/*
 * Values that ranks keep for each other, over real flows: what is pulled is what was pushed before,
 * whatever links do, and what is refused has changed nothing.
 */
#include "mesh_fixture.h"

#include "base/prng.h"

enum {
    KEYS = 12,
    LONG = 3000, /* elements: several packets */
};

static void start(struct model *m, uint32_t rank, const struct gw_store_call *call)
{
    assert_int_equal(gw_store_start(m->ranks[rank].store, call), GW_OK);
}

/* A call from start to end. */
static struct gw_refusal call_once(struct model *m, uint32_t rank, const struct gw_store_call *call)
{
    m->ranks[rank].stored_count = 0;
    start(m, rank, call);
    model_run(m);
    assert_int_equal(m->ranks[rank].stored_count, 1);
    assert_int_equal(m->ranks[rank].stored[0].call, call->call);
    return m->ranks[rank].stored[0].refusal;
}

static void open_store(struct model *m, const struct setup *setup)
{
    model_open(m, setup);
    come_all(m);
    model_run(m);
    expect_state(m, GW_MESH_MET);
}

/* What an element of a push of `round` by a rank is. Small: sums of all types are exact. */
static uint8_t element_of(uint32_t rank, uint32_t round, uint64_t at)
{
    return (uint8_t)((rank + round + at) % 3);
}

static void write_element(void *data, uint64_t at, enum gw_dtype type, uint32_t x)
{
    unsigned char *to = (unsigned char *)data + at * gw_dtype_size(type);
    float f32 = (float)x;
    double f64 = x;
    int32_t i32 = (int32_t)x;
    int64_t i64 = x;
    uint8_t u8 = (uint8_t)x;
    uint32_t bits;
    memcpy(&bits, &f32, sizeof(bits));
    /* Of a small integer; a binary16 has 3 bits less of the exponent, which is 112 less. */
    uint16_t bf16 = (uint16_t)(bits >> 16);
    uint16_t f16 = x ? (uint16_t)(((bits >> 13) - (112u << 10)) & 0x7fff) : 0;
    const void *from[GW_DTYPES] = {&f32, &f16, &bf16, &i32, &f64, &i64, &u8};
    memcpy(to, from[type], gw_dtype_size(type));
}

/* Every type, short and long, pushed by all ranks and pulled by all, over good and bad links. */
static void store__adds_what_all_push(void **state)
{
    (void)state;
    static unsigned char data[WORLD_MAX][LIMIT][LONG * 8], sums[LONG * 8], got[LONG * 8];
    for (uint32_t i = 0; i < 4; i++) {
        struct setup setup = {.world = 1 + 2 * (i & 1) + (i & 2), .has_ways = i & 1};
        struct model m;
        open_store(&m, &setup);
        if (i & 2)
            model_worsen(&m);
        for (uint32_t key = 0; key < KEYS; key++) {
            struct gw_value_shape shape = {.count = key % 2 ? LONG - key : 1 + key,
                                           .type = (enum gw_dtype)(key % GW_DTYPES)};
            uint64_t bytes = gw_value_bytes(&shape);
            enum { ROUNDS = 4 };
            for (uint32_t rank = 0; rank < setup.world; rank++)
                for (uint32_t round = 0; round < ROUNDS; round++) {
                    for (uint64_t at = 0; at < shape.count; at++)
                        write_element(data[rank][round], at, shape.type,
                                      element_of(rank, round, at));
                    start(&m, rank,
                          &(struct gw_store_call){.call = 1 + round,
                                                  .key = key * 77,
                                                  .data = data[rank][round],
                                                  .shape = shape});
                }
            model_run(&m);
            for (uint64_t at = 0; at < shape.count; at++) {
                uint32_t sum = 0;
                for (uint32_t rank = 0; rank < setup.world; rank++)
                    for (uint32_t round = 0; round < ROUNDS; round++)
                        sum += element_of(rank, round, at);
                write_element(sums, at, shape.type, sum);
            }
            for (uint32_t rank = 0; rank < setup.world; rank++) {
                struct rank *own = &m.ranks[rank];
                assert_int_equal(own->stored_count, ROUNDS);
                for (uint32_t round = 0; round < ROUNDS; round++) {
                    assert_int_equal(own->stored[round].call, 1 + round); /* in their order */
                    assert_int_equal(own->stored[round].refusal.why, GW_REFUSED_NOT);
                }
                memset(got, 0xff, sizeof(got));
                struct gw_store_call pull = {
                    .call = 9, .key = key * 77, .data = got, .shape = shape, .is_pull = true};
                assert_int_equal(call_once(&m, rank, &pull).why, GW_REFUSED_NOT);
                assert_memory_equal(got, sums, bytes);
                own->stored_count = 0;
            }
        }
        expect_state(&m, GW_MESH_MET);
        model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store__adds_what_all_push),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
