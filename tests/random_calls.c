/* Random programs of calls; see random_calls.h. */
#include "random_calls.h"

#include "swarm/draw.h"

enum {
    KEYS = 4,
    KEYS_OF_PARTS = 2, /* the first: their pushes and pulls may lose a part */
};

/* What is known of the keys while a program is drawn. */
struct keys {
    enum gw_dtype types[KEYS];
    uint64_t counts[KEYS];
    uint32_t pushes[KEYS];
};

static void draw_value(struct gw_prng *prng, struct keys *keys, struct gw_model_call *call)
{
    uint32_t key = gw_prng_below(prng, KEYS);
    if (call->kind == GW_CALL_PUSH && keys->pushes[key] == GW_CALL_MODEL_PUSHES_MAX)
        call->kind = GW_CALL_PULL;
    call->type = keys->types[key];
    call->count = keys->counts[key];
    call->key = gw_mix64(key);
    call->is_odd = gw_draw_once_in(prng, 8);
    if (call->is_odd)
        call->count++;
    else if (call->kind == GW_CALL_PUSH)
        call->push = keys->pushes[key]++;
}

static void draw_sum(struct gw_prng *prng, struct gw_model_call *call)
{
    bool is_common = gw_prng_below(prng, 2);
    call->via = (enum gw_via)gw_prng_below(prng, GW_VIAS + 1); /* or the job's */
    do {
        call->type = (enum gw_dtype)gw_prng_below(prng, is_common ? GW_DTYPE_SUMMABLE : GW_DTYPES);
        call->op = (enum gw_op)gw_prng_below(prng, is_common ? GW_OP_AVERAGE + 1 : GW_OPS);
    } while (!gw_op_exists(call->op, call->type));
}

/* Lets the call lose a part, if such a call may. What it draws is its own, so that it shifts
 * nothing. Switches add up some types, and of few fragments nobody can be left out. */
static void draw_parts(struct gw_model_call *call, uint64_t elements_max)
{
    static const enum gw_via vias[] = {GW_VIA_PS, GW_VIA_RING, GW_VIA_INA, GW_VIA_INA};
    struct gw_prng own = gw_prng_derive(call->seed, 1);
    if (call->kind == GW_CALL_BARRIER)
        return;
    call->has_parts = true;
    call->bound = gw_prng_below(&own, GW_Q16_ONE / 2);
    call->bound_pull = gw_prng_below(&own, 3) ? gw_prng_below(&own, GW_Q16_ONE / 2) : 0;
    call->op = GW_OP_SUM;
    if (call->kind == GW_CALL_ALLREDUCE)
        call->via = vias[gw_prng_below(&own, 4)];
    if (call->kind != GW_CALL_ALLREDUCE || call->via != GW_VIA_INA)
        return;
    call->type = (enum gw_dtype)(call->type % GW_DTYPE_SUMMABLE);
    call->count = elements_max - call->count / 2;
}

static bool is_of_parts(uint64_t key)
{
    bool is = false;
    for (uint32_t i = 0; i < KEYS_OF_PARTS; i++)
        is |= key == gw_mix64(i);
    return is;
}

static void draw_call(struct gw_prng *prng, uint32_t world, uint64_t elements_max,
                      struct keys *keys, struct gw_model_call *call)
{
    static const enum gw_call_kind kinds[] = {
        GW_CALL_ALLREDUCE, GW_CALL_ALLREDUCE, GW_CALL_ALLREDUCE,      GW_CALL_REDUCE,
        GW_CALL_BROADCAST, GW_CALL_ALLGATHER, GW_CALL_REDUCE_SCATTER, GW_CALL_BARRIER,
        GW_CALL_SEND,      GW_CALL_SEND,      GW_CALL_SEND,           GW_CALL_PUSH,
        GW_CALL_PUSH,      GW_CALL_PULL,
    };
    *call = (struct gw_model_call){
        .kind = kinds[gw_prng_below(prng, sizeof(kinds) / sizeof(*kinds))],
        .count = gw_draw_log(prng, 1, elements_max),
        .seed = gw_prng_next(prng),
        .from = gw_prng_below(prng, world),
    };
    if (call->kind == GW_CALL_SEND && world == 1)
        call->kind = GW_CALL_PUSH; /* there is nobody else */
    if (call->kind == GW_CALL_SEND)
        call->to = (call->from + 1 + gw_prng_below(prng, world - 1)) % world;
    else if (call->kind == GW_CALL_PUSH || call->kind == GW_CALL_PULL)
        draw_value(prng, keys, call);
    else
        draw_sum(prng, call); /* type, and what else the kind has */
    bool is_of_value = call->kind == GW_CALL_PUSH || call->kind == GW_CALL_PULL;
    if (is_of_value ? is_of_parts(call->key) : gw_mix64(call->seed) % 4 == 0)
        draw_parts(call, elements_max);
    call->is_in_place = call->kind == GW_CALL_ALLREDUCE && gw_prng_below(prng, 2);
}

void gw_random_calls(struct gw_prng *prng, uint32_t world, uint64_t elements_max, uint32_t count,
                     struct gw_model_call *calls)
{
    struct keys keys = {0};
    for (uint32_t key = 0; key < KEYS; key++) {
        keys.types[key] = (enum gw_dtype)gw_prng_below(prng, GW_DTYPES);
        keys.counts[key] = gw_draw_log(prng, 1, elements_max);
    }
    for (uint32_t i = 0; i < count; i++)
        draw_call(prng, world, elements_max, &keys, &calls[i]);
}
