/*
 * Values that ranks keep for each other, over real flows: what is pulled is what was pushed before,
 * whatever links do, and what is refused has changed nothing.
 */
#include "mesh_fixture.h"

#include "base/prng.h"
#include "core/ranks/store_impl.h"

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

/* The first key from `key` on that the rank keeps. */
static uint64_t key_of(const struct model *m, uint32_t rank, uint64_t key)
{
    while (gw_mix64(key) % m->setup.world != rank)
        key++;
    return key;
}

static struct gw_refusal move(struct model *m, uint64_t key, void *data, uint64_t count,
                              enum gw_dtype type, bool is_pull)
{
    struct gw_store_call call = {.call = 1,
                                 .key = key,
                                 .data = data,
                                 .shape = {.count = count, .type = type},
                                 .is_pull = is_pull};
    return call_once(m, 0, &call);
}

/* Here and there, short and long: what cannot be done says why, and has changed nothing. */
static void store__refuses_what_does_not_fit(void **state)
{
    (void)state;
    static int32_t ones[LONG], more[LONG], sums[LONG];
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t owner = i & 1;
        uint64_t count = i & 2 ? LONG : 5;
        struct model m;
        open_store(&m, &(struct setup){.world = 2});
        uint64_t key = key_of(&m, owner, 1000);
        for (uint32_t k = 0; k < LONG; k++) {
            ones[k] = 1;
            more[k] = k + 1 == count ? INT32_MAX : 7;
        }
        struct gw_refusal refusal = move(&m, key, sums, count, GW_DTYPE_I32, true);
        assert_int_equal(refusal.why, GW_REFUSED_UNKNOWN_KEY);
        assert_int_equal(refusal.rank, owner);
        assert_true(refusal.key == key && refusal.is_pull);
        assert_int_equal(move(&m, key, ones, count, GW_DTYPE_I32, false).why, GW_REFUSED_NOT);
        refusal = move(&m, key, more, count, GW_DTYPE_I32, false);
        assert_int_equal(refusal.why, GW_REFUSED_OVERFLOW);
        assert_false(refusal.is_pull);
        for (uint32_t is_pull = 0; is_pull < 2; is_pull++) {
            refusal = move(&m, key, sums, count + 1, GW_DTYPE_I32, is_pull);
            assert_int_equal(refusal.why, GW_REFUSED_OTHER_SHAPE);
            assert_int_equal(refusal.found.count, count);
            assert_int_equal(refusal.asked.count, count + 1);
            refusal = move(&m, key, sums, count, GW_DTYPE_F32, is_pull);
            assert_int_equal(refusal.why, GW_REFUSED_OTHER_SHAPE);
            assert_int_equal(refusal.found.type, GW_DTYPE_I32);
        }
        m.ranks[owner].memory_left = 16;
        uint64_t other = key_of(&m, owner, key + 1);
        assert_int_equal(move(&m, other, ones, count, GW_DTYPE_I32, false).why,
                         GW_REFUSED_NO_MEMORY);
        if (owner == 1 && count == LONG) /* to send a long value it is copied */
            assert_int_equal(move(&m, key, sums, count, GW_DTYPE_I32, true).why,
                             GW_REFUSED_NO_MEMORY);
        m.ranks[owner].memory_left = 1 << 20;
        assert_int_equal(move(&m, other, sums, count, GW_DTYPE_I32, true).why,
                         GW_REFUSED_UNKNOWN_KEY);
        memset(sums, 0, sizeof(sums));
        assert_int_equal(move(&m, key, sums, count, GW_DTYPE_I32, true).why, GW_REFUSED_NOT);
        assert_memory_equal(sums, ones, count * sizeof(ones[0]));
        expect_state(&m, GW_MESH_MET);
        model_close(&m);
    }
}

/* A rank that dies in the middle of a long push, as owner or as who pushes: nothing is left. */
static void store__fails_with_a_rank(void **state)
{
    (void)state;
    static unsigned char data[2][200000];
    for (uint32_t i = 0; i < 12; i++) {
        struct model m;
        open_store(&m, &(struct setup){.world = 2});
        for (uint32_t k = 0; k < 2; k++)
            start(&m, 0,
                  &(struct gw_store_call){.key = key_of(&m, 1, 5),
                                          .data = data[k],
                                          .is_pull = k == 1,
                                          .shape = {sizeof(data[0]), GW_DTYPE_U8}});
        assert_int_equal(gw_store_awaited(m.ranks[0].store), 1);
        model_run_for(&m, i * 40 * GW_US); /* the push takes 160 us, and as long the pull */
        die(&m, i & 1);
        if (!(i & 1)) { /* an owner hears it from the registrar, who asks from its flows */
            gw_registrar_gone(m.registrar, address_of(0), gw_mem_now(m.mem));
            model_run(&m);
            expect_failure(&m, 1, &(struct gw_mesh_failure){GW_JOB_LOST, 0, 2});
        } else {
            model_run_for(&m, 3 * STALL);
            gw_registrar_gone(m.registrar, address_of(1), gw_mem_now(m.mem));
        }
        if (i & 1 && m.ranks[0].stored_count < 2) {
            expect_failure(&m, 0, &(struct gw_mesh_failure){GW_JOB_LOST, 1, 0});
            assert_int_equal(gw_store_awaited(m.ranks[0].store), 2);
        }
        model_close(&m);
    }
}

/* Rank 1 asks for a value of `bytes` of which a part may be missing, whatever rank 0 takes. */
static enum gw_mesh_state ask_for_parts(const struct setup *setup, uint64_t bytes)
{
    static struct gw_store_message message;
    const struct gw_store_header header = {.word = GW_STORE_PULL,
                                           .shape = {bytes / 4, GW_DTYPE_F32},
                                           .terms = {.has_parts = true, .bound = GW_Q16_ONE / 2}};
    struct model m;
    uint32_t flow;
    open_store(&m, setup);
    gw_store_write(&message, &header);
    way_up(&m, 1, 0);
    assert_int_equal(gw_mesh_send(m.ranks[1].mesh, 0, gw_store_tag(GW_STORE_REQUEST, 0), &message,
                                  GW_STORE_HEADER_SIZE, &flow, gw_mem_now(m.mem)),
                     GW_OK);
    model_run_for(&m, GW_MS);
    enum gw_mesh_state found = gw_mesh_state(m.ranks[0].mesh);
    if (found == GW_MESH_OVER)
        expect_failure(&m, 0, &(struct gw_mesh_failure){GW_JOB_BROKEN, 1, 0});
    model_close(&m);
    return found;
}

/* Who asks for parts of what cannot have any does not keep to the protocol. */
static void store__has_parts_of_what_can_have_them(void **state)
{
    (void)state;
    static const struct setup good = {
        .world = 2, .may_lose_parts = true, .parts_mtu = MTU, .parts_largest = 4 * MTU};
    struct setup none = good, odd = good;
    none.may_lose_parts = false;
    odd.parts_mtu = MTU + 2; /* no whole number of elements */
    assert_int_equal(ask_for_parts(&good, 4 * MTU), GW_MESH_MET);
    assert_int_equal(ask_for_parts(&good, 4 * MTU + 4), GW_MESH_OVER);
    assert_int_equal(ask_for_parts(&none, 4 * MTU), GW_MESH_OVER);
    assert_int_equal(ask_for_parts(&odd, 4 * MTU), GW_MESH_OVER);
}

/* As many calls as it takes, to all owners at once. */
static void store__is_limited(void **state)
{
    (void)state;
    struct model m;
    open_store(&m, &(struct setup){.world = 3});
    float x = 1;
    struct gw_store_call push = {.data = &x, .shape = {1, GW_DTYPE_F32}};
    for (uint32_t round = 0; round < 2; round++) {
        m.ranks[0].stored_count = 0;
        for (push.key = 0; push.key < LIMIT; push.key++)
            start(&m, 0, &push);
        assert_int_equal(gw_store_start(m.ranks[0].store, &push), GW_ERR_NO_ROOM);
        model_run(&m);
        assert_int_equal(m.ranks[0].stored_count, LIMIT);
    }
    model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store__adds_what_all_push),
        cmocka_unit_test(store__refuses_what_does_not_fit),
        cmocka_unit_test(store__fails_with_a_rank),
        cmocka_unit_test(store__is_limited),
        cmocka_unit_test(store__has_parts_of_what_can_have_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
