/*
 * The store's requester: calls of this rank, those to one owner in their order. Calls for values
 * that are kept here skip the network. See store.h.
 *
 * Memory of the application that is being sent may be that of several calls. So a call ends only
 * when the flow that reads it has.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/prng.h"
#include "core/ranks/mesh_impl.h"
#include "core/ranks/store_impl.h"

static struct gw_store_pair *pair_of(struct gw_store *store, const struct gw_store_work *call)
{
    return &store->pairs[call->rank];
}

/* Whether the data fits a request or an answer. */
static bool is_small(const struct gw_store_work *call)
{
    return gw_value_bytes(&call->call.shape) <= GW_STORE_DATA_MAX && !call->call.parts;
}

static struct gw_store_terms terms_of(const struct gw_parts *parts)
{
    return parts ? (struct gw_store_terms){true, parts->class, parts->bound}
                 : (struct gw_store_terms){.has_parts = false};
}

/* Counts what is missing of a value that has been pulled: it has no contributors here. */
static void note_missing(const struct gw_store *store, struct gw_store_work *call)
{
    const struct gw_parts *parts = call->call.parts;
    const struct gw_value_shape *shape = &call->call.shape;
    uint64_t fragments =
        parts ? gw_value_fragments(shape, gw_store_fragment(store, shape->type)) : 0;
    for (uint64_t i = 0; i < fragments; i++) {
        if (gw_bit_is_set(parts->arrived, i))
            continue;
        parts->counts[i] = 0;
        call->missing++;
    }
}

static void end_call(struct gw_store *store, struct gw_store_work *call)
{
    struct gw_store_pair *pair = pair_of(store, call);
    pair->first = call->next;
    call->state = GW_STORE_CALL_ENDED;
    store->call_count--;
    store->ended[gw_index_queue_push(&store->ended_queue)] = (uint32_t)(call - store->calls);
}

static void refuse(struct gw_store_work *call, uint8_t word, const struct gw_value_shape *found)
{
    call->refusal = (struct gw_refusal){
        .why = (enum gw_refused)word,
        .rank = call->rank,
        .key = call->call.key,
        .is_pull = call->call.is_pull,
        .asked = call->call.shape,
        .found = *found,
    };
}

/* Our own value comes whole. */
static void has_all(const struct gw_store *store, struct gw_store_work *call)
{
    const struct gw_value_shape *shape = &call->call.shape;
    uint64_t fragments = gw_value_fragments(shape, gw_store_fragment(store, shape->type));
    memset(call->call.parts->arrived, 0, gw_bit_words(fragments) * sizeof(uint64_t));
    for (uint64_t i = 0; i < fragments; i++)
        gw_bit_set(call->call.parts->arrived, i);
}

void gw_store_calls_done(struct gw_store *store, uint8_t word, const struct gw_value_shape *found,
                         gw_time now)
{
    struct gw_store_work *call = store->pairs[store->cfg.rank].first;
    if (word != GW_STORE_DONE)
        refuse(call, word, found);
    else if (call->call.is_pull && call->call.parts)
        has_all(store, call);
    end_call(store, call);
    gw_store_calls_advance(store, now);
}

/* Our own value. */
static void start_here(struct gw_store *store, struct gw_store_work *call)
{
    const struct gw_store_call *asked = &call->call;
    pair_of(store, call)->task = (struct gw_store_task){
        .key = asked->key,
        .shape = asked->shape,
        .is_pull = asked->is_pull,
        .data = asked->data,
        .out = asked->data,
        .counts = asked->is_pull && asked->parts ? asked->parts->counts : NULL,
    };
    call->state = GW_STORE_CALL_ASKED;
    gw_store_owner_queue(store, call->rank);
}

/* Posts memory for a large value. */
static void expect_value(struct gw_store *store, struct gw_store_work *call)
{
    const struct gw_store_call *asked = &call->call;
    const struct gw_parts *parts = asked->parts;
    struct gw_expect expect = {
        .tag = gw_store_tag(GW_STORE_VALUE, pair_of(store, call)->requests),
        .data = asked->data,
        .bytes = gw_value_bytes(&asked->shape),
    };
    if (parts) {
        call->finish = gw_finish_within(parts->bound);
        expect.finish = &call->finish;
        expect.arrived = parts->arrived;
        expect.notes = parts->counts;
        expect.packets_max = (uint32_t)gw_value_fragments(
            &asked->shape, gw_store_fragment(store, asked->shape.type));
    }
    int code = gw_mesh_expect_part(store->cfg.mesh, call->rank, &expect);
    GW_ASSERT(code == GW_OK); /* by gw_store_awaits() */
}

/* Asks the owner, if there is a way and room. */
static void start_there(struct gw_store *store, struct gw_store_work *call, gw_time now)
{
    struct gw_mesh *mesh = store->cfg.mesh;
    struct gw_store_pair *pair = pair_of(store, call);
    const struct gw_store_call *asked = &call->call;
    uint64_t bytes = gw_value_bytes(&asked->shape);
    bool has_data = !asked->is_pull && is_small(call);
    const struct gw_store_header header = {
        .word = asked->is_pull ? GW_STORE_PULL : GW_STORE_PUSH,
        .key = asked->key,
        .shape = asked->shape,
        .terms = terms_of(asked->parts),
    };
    if (!gw_mesh_reaches(mesh, call->rank, true))
        return;
    gw_store_write(&pair->request, &header);
    if (has_data)
        memcpy(pair->request.data, asked->data, bytes);
    if (gw_mesh_send(mesh, call->rank, gw_store_tag(GW_STORE_REQUEST, pair->requests),
                     &pair->request, GW_STORE_HEADER_SIZE + (has_data ? bytes : 0),
                     &pair->request_flow, now) != GW_OK)
        return;
    pair->is_requesting = true;
    if (!pair->is_posted)
        gw_store_expect(store, call->rank, gw_store_tag(GW_STORE_ANSWER, pair->answers),
                        &pair->answer, GW_STORE_MESSAGE_SIZE);
    pair->is_posted = true;
    if (asked->is_pull && !is_small(call))
        expect_value(store, call);
    call->state = GW_STORE_CALL_ASKED;
}

static void send_data(struct gw_store *store, struct gw_store_work *call, gw_time now)
{
    const struct gw_mesh_cfg *mesh = &store->cfg.mesh->cfg;
    const struct gw_parts *parts = call->call.parts;
    struct gw_send send = {
        .bytes = gw_value_bytes(&call->call.shape),
        .data = call->call.data,
        .tag = gw_store_tag(GW_STORE_DATA, pair_of(store, call)->requests),
        .class = mesh->class,
        .transport = mesh->transport,
    };
    if (parts) {
        send.class = parts->class;
        send.transport = store->cfg.parts_transport;
        send.bound = parts->bound;
        send.important = parts->important;
        send.importance = (struct gw_importance_terms){
            .rule = (enum gw_importance_rule)parts->importance,
            .type = call->call.shape.type,
            .kernels = store->cfg.kernels,
        };
        send.important_first = parts->important_first;
    }
    if (gw_mesh_send_part(store->cfg.mesh, call->rank, &send, &call->flow, now) == GW_OK)
        call->state = GW_STORE_CALL_SENDS;
}

int gw_store_start(struct gw_store *store, const struct gw_store_call *asked)
{
    uint32_t i = 0;
    while (i < store->cfg.limit && store->calls[i].state != GW_STORE_CALL_FREE)
        i++;
    if (i == store->cfg.limit)
        return GW_ERR_NO_ROOM;
    GW_ASSERT(!store->cfg.mesh->cfg.is_bare);
    struct gw_store_work *call = &store->calls[i];
    *call = (struct gw_store_work){
        .call = *asked,
        .state = GW_STORE_CALL_WAITS,
        .rank = (uint32_t)(gw_mix64(asked->key) % store->cfg.world),
    };
    struct gw_store_pair *pair = pair_of(store, call);
    if (pair->first)
        pair->last->next = call;
    else
        pair->first = call;
    pair->last = call;
    store->call_count++;
    return GW_OK;
}

void gw_store_calls_advance(struct gw_store *store, gw_time now)
{
    for (uint32_t i = 0; store->call_count && i < store->cfg.limit; i++) {
        struct gw_store_work *call = &store->calls[i];
        bool is_first = call->state != GW_STORE_CALL_FREE && call->state != GW_STORE_CALL_ENDED &&
                        pair_of(store, call)->first == call;
        if (is_first && call->state == GW_STORE_CALL_GRANTED)
            send_data(store, call, now);
        else if (is_first && call->state == GW_STORE_CALL_WAITS && call->rank == store->cfg.rank)
            start_here(store, call);
        else if (is_first && call->state == GW_STORE_CALL_WAITS)
            start_there(store, call, now);
    }
}

/* The owner is done with the request, and has it, whether or not it could say so. */
static void finish(struct gw_store *store, struct gw_store_work *call)
{
    struct gw_store_pair *pair = pair_of(store, call);
    if (pair->is_requesting)
        gw_mesh_forget(store->cfg.mesh, &pair->request, sizeof(pair->request));
    pair->is_requesting = false;
    pair->requests++;
    if (call->state == GW_STORE_CALL_SENDS)
        call->is_answered = true;
    else
        end_call(store, call);
}

/* The owner has memory for the data of a push. False: it was not asked for any. */
static bool take_go(struct gw_store *store, struct gw_store_work *call, uint64_t bytes, gw_time now)
{
    struct gw_store_pair *pair = pair_of(store, call);
    if (call->call.is_pull || is_small(call) || call->is_granted || bytes != 0)
        return false;
    call->is_granted = true;
    call->state = GW_STORE_CALL_GRANTED;
    gw_store_expect(store, call->rank, gw_store_tag(GW_STORE_ANSWER, pair->answers), &pair->answer,
                    GW_STORE_MESSAGE_SIZE);
    pair->is_posted = true;
    send_data(store, call, now);
    return true;
}

/* False: the answer does not go with what was asked. */
static bool take_answer(struct gw_store *store, struct gw_store_work *call, uint64_t bytes,
                        gw_time now)
{
    struct gw_store_pair *pair = pair_of(store, call);
    const struct gw_store_call *asked = &call->call;
    struct gw_store_header header;
    uint64_t size = gw_value_bytes(&asked->shape);
    if (!gw_store_read(&pair->answer, bytes, &header) || header.key != asked->key ||
        call->is_answered)
        return false;
    bytes -= GW_STORE_HEADER_SIZE;
    if (header.word == GW_STORE_GO)
        return take_go(store, call, bytes, now);
    if (header.word == GW_STORE_DONE) {
        bool is_large_push = !asked->is_pull && !is_small(call);
        if (bytes != (asked->is_pull ? size : 0) || (asked->is_pull && !is_small(call)) ||
            is_large_push != call->is_granted)
            return false;
        memcpy(asked->data, pair->answer.data, bytes);
    } else if (header.word >= GW_REFUSED_UNKNOWN_KEY && header.word <= GW_REFUSED_NO_MEMORY) {
        refuse(call, header.word, &header.shape);
        if (asked->is_pull && !is_small(call))
            gw_mesh_forget(store->cfg.mesh, asked->data, size);
    } else {
        return false;
    }
    finish(store, call);
    return true;
}

/* What we sent has arrived. */
static void take_sent(struct gw_store *store, struct gw_store_pair *pair,
                      const struct gw_event *event)
{
    struct gw_store_work *call = pair->first;
    if (pair->is_requesting && event->flow == pair->request_flow) {
        pair->is_requesting = false;
    } else if (call && call->state == GW_STORE_CALL_SENDS && event->flow == call->flow) {
        call->state = GW_STORE_CALL_ASKED;
        if (call->is_answered)
            end_call(store, call);
    }
}

void gw_store_calls_event(struct gw_store *store, uint32_t rank, const struct gw_event *event,
                          gw_time now)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    struct gw_store_work *call = pair->first;
    if (event->kind == GW_EVENT_SENT) {
        take_sent(store, pair, event);
        return;
    }
    bool makes_sense = call && call->state != GW_STORE_CALL_WAITS;
    if (makes_sense && event->tag == gw_store_tag(GW_STORE_VALUE, pair->requests)) {
        makes_sense = call->call.is_pull && !is_small(call) &&
                      gw_store_fits(store, gw_value_bytes(&call->call.shape),
                                    call->call.parts != NULL, event);
        if (makes_sense) {
            note_missing(store, call);
            finish(store, call);
        }
    } else if (makes_sense && event->tag == gw_store_tag(GW_STORE_ANSWER, pair->answers)) {
        pair->answers++;
        pair->is_posted = false;
        makes_sense = take_answer(store, call, event->bytes, now);
    } else {
        makes_sense = false;
    }
    if (!makes_sense)
        gw_store_blame(store, rank, now);
}

uint32_t gw_store_awaited(const struct gw_store *store)
{
    uint32_t i = 0;
    while (i < store->cfg.limit && (store->calls[i].state == GW_STORE_CALL_FREE ||
                                    store->calls[i].state == GW_STORE_CALL_ENDED))
        i++;
    return i < store->cfg.limit ? store->calls[i].rank : store->cfg.world;
}
