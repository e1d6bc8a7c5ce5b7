/* Calls of the job model's ranks: what they are given, and whether it is right; see job_model.h. */
#include "job_model_impl.h"

#include "parts_model.h"

#include "base/bits.h"
#include "base/error.h"

enum {
    COLLECTIVES, /* the two rows of a rank */
    OTHERS,
    OTHERS_MAX = 40, /* in work: so that collectives always find room */
    UNTOUCHED = 0xa5,
    BURIED = 0xee,
};

#define REST (50 * GW_US) /* of a rank that finds nothing to start */

static bool is_of_value(const struct gw_model_call *call)
{
    return call->kind == GW_CALL_PUSH || call->kind == GW_CALL_PULL;
}

void gw_job_model_draw(struct gw_job_model *m, struct gw_job_model_actor *actor)
{
    for (uint32_t i = 0; i < m->cfg->call_count; i++) {
        const struct gw_model_call *call = &m->cfg->calls[i];
        uint32_t row = gw_model_call_is_collective(call) ? COLLECTIVES : OTHERS;
        if (gw_model_call_has(call, actor->rank))
            actor->order[row][actor->count[row]++] = i;
    }
    for (uint32_t i = actor->count[OTHERS]; i > 1; i--) {
        uint32_t other = gw_prng_below(&m->prng, i);
        uint32_t kept = actor->order[OTHERS][i - 1];
        actor->order[OTHERS][i - 1] = actor->order[OTHERS][other];
        actor->order[OTHERS][other] = kept;
    }
}

bool gw_job_model_has_calls(const struct gw_job_model_actor *actor)
{
    return actor->in_work || actor->next[COLLECTIVES] < actor->count[COLLECTIVES] ||
           actor->next[OTHERS] < actor->count[OTHERS];
}

static void bury(struct gw_job_model *m, unsigned char *bytes, size_t size)
{
    if (!bytes)
        return;
    struct gw_job_model_grave *grave = gw_test_take(sizeof(*grave));
    memset(bytes, BURIED, size);
    *grave = (struct gw_job_model_grave){.next = m->graves, .size = size, .bytes = bytes};
    m->graves = grave;
}

void gw_job_model_check_graves(struct gw_job_model *m)
{
    while (m->graves) {
        struct gw_job_model_grave *grave = m->graves;
        for (size_t i = 0; i < grave->size; i++)
            if (grave->bytes[i] != BURIED)
                fail_msg("memory of a call was written after its end");
        m->graves = grave->next;
        free(grave->bytes);
        free(grave);
    }
}

/* The first call of the program that is about the same key. */
static uint32_t key_of(const struct gw_job_model *m, const struct gw_model_call *call)
{
    uint32_t i = 0;
    while (m->cfg->calls[i].kind < GW_CALL_PUSH || m->cfg->calls[i].key != call->key)
        i++;
    return i;
}

static void release(struct gw_job_model *m, struct gw_job_model_actor *actor,
                    struct gw_job_model_work *work)
{
    const struct gw_model_call *call = &m->cfg->calls[work->index - 1];
    if (call->is_in_place)
        work->in = NULL;
    bury(m, (unsigned char *)work->parts.arrived, gw_bit_words(work->fragments) * sizeof(uint64_t));
    bury(m, (unsigned char *)work->parts.counts, work->fragments * sizeof(uint16_t));
    bury(m, work->in, work->in_size);
    bury(m, work->out, work->out_size);
    actor->in_work--;
    actor->collectives_in_work -= gw_model_call_is_collective(call);
    *work = (struct gw_job_model_work){0};
}

void gw_job_model_bury_calls(struct gw_job_model *m, struct gw_job_model_actor *actor)
{
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++)
        if (actor->works[i].index)
            release(m, actor, &actor->works[i]);
    actor->next[COLLECTIVES] = actor->count[COLLECTIVES];
    actor->next[OTHERS] = actor->count[OTHERS];
}

/* Whether stragglers may be left out of it. */
static bool is_by_servers(const struct gw_model_call *call)
{
    return call->kind == GW_CALL_ALLREDUCE && call->via == GW_VIA_INA &&
           gw_op_by_switch(call->op, call->type);
}

static uint32_t fragment_of(const struct gw_job_model *m, const struct gw_model_call *call)
{
    uint32_t size = call->kind == GW_CALL_SEND ? 1 : gw_dtype_size(call->type);
    return is_by_servers(call) ? m->cfg->values : m->net.cfg.mtu / size;
}

/* Terms of a call, and memory for what becomes of it where there is a result. */
static void fill_parts(const struct gw_job_model *m, const struct gw_model_call *call,
                       struct gw_job_model_work *work)
{
    work->parts = (struct gw_parts){
        .bound = call->bound,
        .bound_pull = call->bound_pull,
        .class = 1 + call->seed % 6,
        .important_first = call->seed % 2,
    };
    if (!work->out)
        return;
    work->fragments = gw_parts_model_fragments(call, m->cfg->world, fragment_of(m, call));
    work->parts.arrived = gw_test_take(gw_bit_words(work->fragments) * sizeof(uint64_t));
    work->parts.counts = gw_test_take(work->fragments * sizeof(uint16_t));
}

/* Memory of a call, and in it what this rank brings. */
static void fill(const struct gw_job_model *m, const struct gw_job_model_actor *actor,
                 const struct gw_model_call *call, struct gw_job_model_work *work)
{
    uint32_t world = m->cfg->world;
    bool is_root = call->kind == GW_CALL_BROADCAST && call->from == actor->rank;
    work->in_size = gw_model_call_in_size(call, world, actor->rank);
    work->out_size = gw_model_call_out_size(call, world, actor->rank);
    if (work->out_size) {
        work->out = gw_test_take(work->out_size);
        memset(work->out, UNTOUCHED, work->out_size);
    }
    if (call->is_in_place)
        work->in = work->out;
    else if (work->in_size)
        work->in = gw_test_take(work->in_size);
    if (call->has_parts)
        fill_parts(m, call, work);
    if ((work->in || is_root) && call->has_parts && call->kind != GW_CALL_PUSH)
        gw_parts_model_fill(call, world, actor->rank, is_root ? work->out : work->in);
    else if (work->in || is_root)
        gw_model_call_fill(call, world, actor->rank, is_root ? work->out : work->in);
}

/* As the communicator of this rank takes it. */
static struct gw_call call_of(const struct gw_job_model_actor *actor,
                              const struct gw_model_call *call,
                              const struct gw_job_model_work *work)
{
    bool is_message = call->kind == GW_CALL_SEND;
    bool is_receive = is_message && call->to == actor->rank;
    return (struct gw_call){
        .kind = is_receive ? GW_CALL_RECEIVE : call->kind,
        .via = call->via,
        .type = call->type,
        .op = call->op,
        .number = work->index,
        .in = work->in,
        .out = work->out,
        .count = call->count,
        .peer = is_message && !is_receive ? call->to : call->from,
        .tag = is_message ? work->index : 0,
        .key = call->key,
        .parts = call->has_parts ? &work->parts : NULL,
    };
}

/* Pushes that the value must hold when this rank's next pull of it is answered: those that have
 * ended, and its own, which go before the pull. */
static uint32_t pushes_due(const struct gw_job_model *m, const struct gw_job_model_actor *actor,
                           uint32_t key)
{
    uint32_t pushes = m->pushes_ended[key];
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++) {
        uint32_t index = actor->works[i].index;
        const struct gw_model_call *call = index ? &m->cfg->calls[index - 1] : NULL;
        if (call && call->kind == GW_CALL_PUSH && !call->is_odd && key_of(m, call) == key)
            pushes |= 1u << call->push;
    }
    return pushes;
}

/* Starts a call of the program; false: there is no room. */
static bool start(struct gw_job_model *m, struct gw_job_model_actor *actor, uint32_t index)
{
    const struct gw_model_call *call = &m->cfg->calls[index];
    uint32_t key = is_of_value(call) ? key_of(m, call) : 0, free_work = 0;
    if (call->is_odd && call->kind == GW_CALL_PUSH && !m->pushes_ended[key])
        return true; /* it would make the value, and the others would be the odd ones */
    while (free_work < GW_COMMUNICATOR_CALLS_MAX && actor->works[free_work].index)
        free_work++;
    if (free_work == GW_COMMUNICATOR_CALLS_MAX)
        return false;
    struct gw_job_model_work *work = &actor->works[free_work];
    work->pushes = is_of_value(call) ? pushes_due(m, actor, key) : 0;
    work->index = index + 1;
    fill(m, actor, call, work);
    if (call->kind == GW_CALL_PUSH && !call->is_odd) {
        m->pushes_begun[key] |= 1u << call->push;
        m->push_bounds[key][call->push] = call->bound;
    }
    const struct gw_call told = call_of(actor, call, work);
    assert_int_equal(gw_communicator_call(actor->comm, &told, gw_job_model_now(m)), GW_OK);
    actor->in_work++;
    actor->collectives_in_work += gw_model_call_is_collective(call);
    return true;
}

/* Starts the next of a row, if it may; false: not now. */
static bool start_next(struct gw_job_model *m, struct gw_job_model_actor *actor, uint32_t row)
{
    uint32_t others = actor->in_work - actor->collectives_in_work;
    bool has_room =
        row == COLLECTIVES ? actor->collectives_in_work < m->cfg->depth : others < OTHERS_MAX;
    if (actor->next[row] == actor->count[row] || !has_room)
        return false;
    if (!start(m, actor, actor->order[row][actor->next[row]]))
        return false;
    actor->next[row]++;
    return true;
}

/* Whether some rank has pushes or pulls left: until then nobody leaves, since he who keeps the
 * value would be missed. */
static bool are_values_needed(const struct gw_job_model *m)
{
    for (uint32_t rank = 0; rank < m->cfg->world; rank++) {
        const struct gw_job_model_actor *actor = &m->actors[rank];
        bool is_needed = actor->in_work > actor->collectives_in_work;
        for (uint32_t i = actor->next[OTHERS]; i < actor->count[OTHERS]; i++)
            is_needed |= is_of_value(&m->cfg->calls[actor->order[OTHERS][i]]);
        if (is_needed && actor->state <= GW_JOB_MODEL_OPEN)
            return true;
    }
    return false;
}

/* Starts a few of its calls; false: nothing can be started now. */
static bool start_some(struct gw_job_model *m, struct gw_job_model_actor *actor)
{
    uint32_t most = 1 + gw_prng_below(&m->prng, 8);
    bool has_started = false;
    for (uint32_t i = 0; i < most; i++) {
        uint32_t row = gw_prng_below(&m->prng, 2);
        has_started |= start_next(m, actor, row) || start_next(m, actor, !row);
    }
    return has_started;
}

void gw_job_model_start_calls(struct gw_job_model *m, struct gw_job_model_actor *actor)
{
    const struct gw_job_model_cfg *cfg = m->cfg;
    bool may_start = actor->state == GW_JOB_MODEL_OPEN ||
                     (actor->state == GW_JOB_MODEL_OPENING && cfg->is_early);
    bool has_started = may_start && start_some(m, actor);
    gw_time leave_after = cfg->leave_after[actor->rank];
    bool is_done = !gw_job_model_has_calls(actor) && actor->state == GW_JOB_MODEL_OPEN &&
                   !are_values_needed(m);
    if (is_done)
        gw_job_model_at(m, leave_after ? leave_after : gw_job_model_some(m, cfg->apart),
                        GW_JOB_MODEL_LEAVE, actor->rank, 0);
    else if (actor->state <= GW_JOB_MODEL_OPEN)
        gw_job_model_at(m, gw_job_model_some(m, cfg->pause) + (has_started ? 0 : REST),
                        GW_JOB_MODEL_START, actor->rank, 0);
}

static void check_pull(struct gw_job_model *m, const struct gw_model_call *call,
                       const struct gw_job_model_work *work)
{
    uint32_t pushes, key = key_of(m, call);
    if (!gw_model_call_pushes(call, work->out, &pushes))
        fail_msg("call %u: a pull saw a part of a push", work->index);
    if (pushes & ~m->pushes_begun[key])
        fail_msg("call %u: a pull saw a push that had not begun", work->index);
    if (work->pushes & ~pushes)
        fail_msg("call %u: a pull missed a push that had ended", work->index);
}

static void check_result(struct gw_job_model *m, const struct gw_job_model_actor *actor,
                         const struct gw_model_call *call, const struct gw_job_model_work *work)
{
    if (call->kind == GW_CALL_PULL) {
        check_pull(m, call, work);
    } else if (work->out) {
        unsigned char *expected = gw_test_take(work->out_size);
        gw_model_call_expect(call, m->cfg->world, actor->rank, expected);
        for (size_t i = 0; i < work->out_size; i++)
            if (work->out[i] != expected[i])
                fail_msg("rank %u, call %u (kind %u, via %u, type %u, op %u): byte %zu is wrong",
                         actor->rank, work->index, call->kind, call->via, call->type, call->op, i);
        free(expected);
    }
}

/* The same of a call that may lose a part: all ranks have the same, too. */
static void check_parts(struct gw_job_model *m, const struct gw_job_model_actor *actor,
                        const struct gw_model_call *call, const struct gw_job_model_work *work,
                        uint64_t missing)
{
    const struct gw_parts_model_result result = {
        .out = work->out,
        .arrived = work->parts.arrived,
        .counts = work->parts.counts,
        .missing = missing,
        .fragment = fragment_of(m, call),
    };
    if (!work->out)
        return;
    m->result->results_missing += missing;
    if (call->kind == GW_CALL_PULL) {
        uint32_t key = key_of(m, call);
        gw_parts_model_check_pull(call, &result, m->pushes_begun[key], work->pushes,
                                  m->push_bounds[key]);
        return;
    }
    uint64_t digest = gw_parts_model_check(call, m->cfg->world, actor->rank, &result);
    uint64_t *known = &m->digests[work->index - 1];
    if (*known && *known != digest)
        fail_msg("call %u (kind %u, via %u): rank %u has other results", work->index, call->kind,
                 call->via, actor->rank);
    *known = digest;
    uint64_t lacking = 0;
    for (uint64_t i = 0; call->kind == GW_CALL_ALLREDUCE && i < work->fragments; i++)
        lacking += work->parts.counts[i] ? m->cfg->world - work->parts.counts[i] : 0;
    m->result->contributions_missing += lacking;
    m->result->left_out += is_by_servers(call) ? lacking : 0;
}

/* A refusal is right: of what was to be refused, or of a pull that came first. */
static void check_refusal(struct gw_job_model *m, const struct gw_model_call *call,
                          const struct gw_job_model_work *work, const struct gw_refusal *refusal)
{
    assert_true(refusal->key == call->key);
    assert_int_equal(refusal->is_pull, call->kind == GW_CALL_PULL);
    assert_in_range(refusal->rank, 0, m->cfg->world - 1);
    assert_true(refusal->asked.count == call->count && refusal->asked.type == call->type);
    if (call->is_odd && refusal->why == GW_REFUSED_OTHER_SHAPE) {
        assert_true(refusal->found.count != call->count && refusal->found.type == call->type);
        return;
    }
    assert_int_equal(refusal->why, GW_REFUSED_UNKNOWN_KEY);
    assert_int_equal(call->kind, GW_CALL_PULL);
    assert_int_equal(work->pushes, 0);
}

void gw_job_model_call_ended(struct gw_job_model *m, struct gw_job_model_actor *actor,
                             const struct gw_communicator_event *event)
{
    struct gw_job_model_rank *result = &m->result->ranks[actor->rank];
    uint32_t i = 0;
    while (i < GW_COMMUNICATOR_CALLS_MAX && actor->works[i].index != event->call)
        i++;
    assert_in_range(i, 0, GW_COMMUNICATOR_CALLS_MAX - 1);
    struct gw_job_model_work *work = &actor->works[i];
    const struct gw_model_call *call = &m->cfg->calls[work->index - 1];
    if (event->kind == GW_COMMUNICATOR_REFUSED) {
        check_refusal(m, call, work, &event->refusal);
        result->refused++;
    } else {
        assert_false(call->is_odd);
        if (call->has_parts)
            check_parts(m, actor, call, work, event->missing);
        else
            check_result(m, actor, call, work);
        result->done++;
        if (call->kind == GW_CALL_PUSH)
            m->pushes_ended[key_of(m, call)] |= 1u << call->push;
        if (call->kind == GW_CALL_SEND && call->to == actor->rank && !call->has_parts)
            assert_true(event->bytes == call->count);
    }
    release(m, actor, work);
}
