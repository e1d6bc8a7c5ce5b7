/*
 * Collectives of every kind over the workers of coll_run_fixture.h. A call is checked against what
 * its definition says, computed from the values of all workers; around each memory there are
 * guards, and what a worker only reads must stay as it is.
 */
#ifndef GW_TESTS_COLL_KINDS_FIXTURE_H
#define GW_TESTS_COLL_KINDS_FIXTURE_H

#include "coll_run_fixture.h"

enum {
    GUARD = 64, /* bytes */
    GUARD_BYTE = 0xa5,
};

struct ask {
    enum gw_coll_kind kind;
    uint32_t root;
    bool in_place;
    struct call call;
};

/* Memory of one worker; `in` and `out` are NULL where the call has none. */
struct memory {
    unsigned char *block; /* guard, in, guard, out, guard */
    uint64_t size;
    unsigned char *before; /* what is to be there in the end */
    unsigned char *in, *out;
};

static inline bool is_rooted(const struct ask *ask)
{
    return ask->kind == GW_COLL_BROADCAST || ask->kind == GW_COLL_REDUCE;
}

/* Bytes from one worker's part to the next one's. */
static inline uint64_t stride_of(const struct model *m, const struct ask *ask)
{
    return (ask->call.count + m->setup.gap) * gw_dtype_size(ask->call.type);
}

/* Bytes of the memory that a worker gives, and gets. */
static inline uint64_t given(const struct model *m, const struct ask *ask)
{
    uint64_t parts = ask->kind == GW_COLL_REDUCE_SCATTER ? m->setup.world : 1;
    return (parts - 1) * stride_of(m, ask) + ask->call.count * gw_dtype_size(ask->call.type);
}

static inline uint64_t got(const struct model *m, const struct ask *ask)
{
    uint64_t parts = ask->kind == GW_COLL_ALLGATHER ? m->setup.world : 1;
    return (parts - 1) * stride_of(m, ask) + ask->call.count * gw_dtype_size(ask->call.type);
}

static inline void memory_open(const struct model *m, const struct ask *ask, uint32_t rank,
                               struct memory *memory)
{
    uint64_t in_size = given(m, ask), out_size = got(m, ask);
    uint64_t part = rank * stride_of(m, ask);
    memory->size = 3 * GUARD + in_size + out_size;
    memory->block = gw_test_take(memory->size);
    memory->before = gw_test_take(memory->size);
    memset(memory->block, GUARD_BYTE, memory->size);
    memory->in = memory->block + GUARD;
    memory->out = memory->block + 2 * GUARD + in_size;
    if (ask->in_place && ask->kind == GW_COLL_ALLGATHER)
        memory->in = memory->out + part;
    else if (ask->in_place)
        memory->out = memory->in + (ask->kind == GW_COLL_REDUCE_SCATTER ? part : 0);
    struct call fill = ask->call;
    fill.count = in_size / gw_dtype_size(fill.type);
    if (fill.count)
        fill_tensor(memory->in, &fill, rank);
    if (ask->kind == GW_COLL_BROADCAST && rank != ask->root)
        memory->in = NULL;
    if (ask->kind == GW_COLL_REDUCE && rank != ask->root)
        memory->out = NULL;
}

/* `to` = own op arrived, of the worker that adds as the `place`th. */
static inline void add_own(const struct model *m, const struct ask *ask, uint32_t place, void *to,
                           const unsigned char *own)
{
    bool is_share = ask->call.op == GW_OP_AVERAGE && place == m->setup.world - 1;
    const struct gw_combination how = {ask->call.op, ask->call.type, is_share ? m->setup.world : 1};
    assert_true(gw_combine(gw_kernels_best(0), &how, to, own, (uint32_t)ask->call.count));
}

/* The results of `count` elements at `offset` of each worker's values, which `last` completes: the
 * others have added theirs up the ranks, and the one behind it has begun. */
static inline void expect_results(const struct model *m, const struct ask *ask,
                                  const struct memory *memories, uint64_t offset, uint32_t last,
                                  unsigned char *to)
{
    uint32_t n = m->setup.world;
    memcpy(to, memories[(last + 1) % n].in + offset,
           ask->call.count * gw_dtype_size(ask->call.type));
    for (uint32_t place = 1; place < n; place++)
        add_own(m, ask, place, to, memories[(last + 1 + place) % n].in + offset);
}

/* What each worker's memory is to be in the end. */
static inline void expect_all(const struct model *m, const struct ask *ask, struct memory *memories)
{
    uint64_t part = ask->call.count * gw_dtype_size(ask->call.type);
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        memcpy(memories[rank].before, memories[rank].block, memories[rank].size);
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        struct memory *memory = &memories[rank];
        if (!memory->out || !part)
            continue;
        unsigned char *out = memory->before + (memory->out - memory->block);
        if (ask->kind == GW_COLL_BROADCAST)
            memcpy(out, memories[ask->root].in, part);
        else if (ask->kind == GW_COLL_REDUCE)
            expect_results(m, ask, memories, 0, rank, out);
        else if (ask->kind == GW_COLL_REDUCE_SCATTER)
            expect_results(m, ask, memories, rank * stride_of(m, ask), rank, out);
        for (uint32_t i = 0; ask->kind == GW_COLL_ALLGATHER && i < m->setup.world; i++)
            memcpy(out + i * stride_of(m, ask), memories[i].in, part);
    }
}

static inline struct gw_coll_call ask_call(const struct model *m, const struct ask *ask,
                                           const struct memory *memory)
{
    struct gw_coll_call call = call_at(m, &ask->call, memory->in, memory->out);
    call.coll = gw_coll_for(ask->kind);
    call.root = is_rooted(ask) ? ask->root : 0;
    call.stride = m->setup.gap ? ask->call.count + m->setup.gap : 0;
    return call;
}

static inline void ask_start(struct model *m, const struct ask *ask, uint32_t rank,
                             const struct memory *memory)
{
    const struct gw_coll_call call = ask_call(m, ask, memory);
    assert_int_equal(gw_coll_run_start(m->workers[rank].run, &call, gw_mem_now(m->mem)), GW_OK);
}

static inline void ask_move_tags(struct model *m, const struct ask *ask)
{
    const struct gw_coll_call call = ask_call(m, ask, &(struct memory){.in = NULL});
    m->tag += (uint32_t)gw_coll_run_tags(m->workers[0].run, &call);
}

/* A call from start to end; rank `late` begins `delay` after the others. */
static inline void ask_late(struct model *m, const struct ask *ask, uint32_t late, gw_time delay)
{
    struct memory memories[WORLD_MAX];
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        memory_open(m, ask, rank, &memories[rank]);
    expect_all(m, ask, memories);
    for (uint32_t rank = 0; rank < m->setup.world; rank++)
        if (rank != late)
            ask_start(m, ask, rank, &memories[rank]);
    if (late < m->setup.world) {
        gw_time until = gw_time_add(gw_mem_now(m->mem), delay);
        while (model_step(m, until)) {
        }
        ask_start(m, ask, late, &memories[late]);
    }
    model_run(m);
    ask_move_tags(m, ask);
    for (uint32_t rank = 0; rank < m->setup.world; rank++) {
        assert_int_equal(state_of(&m->workers[rank]), GW_COLL_RUN_DONE);
        assert_true(gw_coll_run_is_summed(m->workers[rank].run));
        assert_int_equal(m->workers[rank].event_count, 0);
        assert_memory_equal(memories[rank].block, memories[rank].before, memories[rank].size);
        free(memories[rank].block);
        free(memories[rank].before);
    }
}

static inline void ask_once(struct model *m, const struct ask *ask)
{
    ask_late(m, ask, UINT32_MAX, 0);
}

#endif
