/*
 * The store's requester: calls of this rank, those to one owner in their order. Calls for values
 * that are kept here skip the network. See team_store.h.
 *
 * Memory of the application that is being sent may be that of several calls. So a call ends only
 * when the flow that reads it has.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/prng.h"
#include "net/ranks/team_store_impl.h"

static struct gw_team_store_pair *pair_of(struct gw_team_store *store,
                                          const struct gw_team_store_work *call)
{
    return &store->pairs[call->rank];
}

/* Whether the data fits a request or an answer. */
static bool is_small(const struct gw_team_store_work *call)
{
    return gw_team_value_bytes(&call->call.shape) <= GW_TEAM_STORE_DATA_MAX;
}

static void end_call(struct gw_team_store *store, struct gw_team_store_work *call)
{
    struct gw_team_store_pair *pair = pair_of(store, call);
    struct gw_team_event event = {
        .kind = call->refusal.why ? GW_TEAM_REFUSED : GW_TEAM_DONE,
        .call = call->call.call,
        .refusal = call->refusal,
    };
    pair->first = call->next;
    call->state = GW_TEAM_STORE_CALL_FREE;
    store->call_count--;
    gw_team_post(store->cfg.comm, &event);
}

static void refuse(struct gw_team_store_work *call, uint8_t word,
                   const struct gw_team_value_shape *found)
{
    call->refusal = (struct gw_team_refusal){
        .why = (enum gw_team_refused)word,
        .rank = call->rank,
        .key = call->call.key,
        .is_pull = call->call.is_pull,
        .asked = call->call.shape,
        .found = *found,
    };
}

void gw_team_store_calls_done(struct gw_team_store *store, uint8_t word,
                              const struct gw_team_value_shape *found, gw_time now)
{
    struct gw_team_store_work *call = store->pairs[store->cfg.rank].first;
    if (word != GW_TEAM_STORE_DONE)
        refuse(call, word, found);
    end_call(store, call);
    gw_team_store_calls_advance(store, now);
}

/* Our own value. */
static void start_here(struct gw_team_store *store, struct gw_team_store_work *call)
{
    const struct gw_team_store_call *asked = &call->call;
    pair_of(store, call)->task = (struct gw_team_store_task){
        .key = asked->key,
        .shape = asked->shape,
        .is_pull = asked->is_pull,
        .data = asked->data,
        .out = asked->data,
    };
    call->state = GW_TEAM_STORE_CALL_ASKED;
    gw_team_store_owner_queue(store, call->rank);
}

/* Asks the owner, if there is a way and room. */
static void start_there(struct gw_team_store *store, struct gw_team_store_work *call, gw_time now)
{
    struct gw_team *comm = store->cfg.comm;
    struct gw_team_store_pair *pair = pair_of(store, call);
    const struct gw_team_store_call *asked = &call->call;
    uint64_t bytes = gw_team_value_bytes(&asked->shape);
    bool has_data = !asked->is_pull && is_small(call);
    if (!gw_team_is_up(comm, call->rank)) {
        gw_team_connect(comm, call->rank, now);
        return;
    }
    gw_team_store_write(&pair->request, asked->is_pull ? GW_TEAM_STORE_PULL : GW_TEAM_STORE_PUSH,
                        asked->key, &asked->shape);
    if (has_data)
        memcpy(pair->request.data, asked->data, bytes);
    if (gw_team_send(comm, call->rank, gw_team_store_tag(GW_TEAM_STORE_REQUEST, pair->requests),
                     &pair->request, GW_TEAM_STORE_HEADER_SIZE + (has_data ? bytes : 0),
                     &pair->request_flow, now) != GW_OK)
        return;
    pair->is_requesting = true;
    if (!pair->is_posted)
        gw_team_store_expect(store, call->rank,
                             gw_team_store_tag(GW_TEAM_STORE_ANSWER, pair->answers), &pair->answer,
                             GW_TEAM_STORE_MESSAGE_SIZE);
    pair->is_posted = true;
    if (asked->is_pull && !is_small(call))
        gw_team_store_expect(store, call->rank,
                             gw_team_store_tag(GW_TEAM_STORE_VALUE, pair->requests), asked->data,
                             bytes);
    call->state = GW_TEAM_STORE_CALL_ASKED;
}

static void send_data(struct gw_team_store *store, struct gw_team_store_work *call, gw_time now)
{
    if (gw_team_send(store->cfg.comm, call->rank,
                     gw_team_store_tag(GW_TEAM_STORE_DATA, pair_of(store, call)->requests),
                     call->call.data, gw_team_value_bytes(&call->call.shape), &call->flow,
                     now) == GW_OK)
        call->state = GW_TEAM_STORE_CALL_SENDS;
}

int gw_team_store_start(struct gw_team_store *store, const struct gw_team_store_call *asked)
{
    uint32_t i = 0;
    while (i < GW_TEAM_CALLS_MAX && store->calls[i].state != GW_TEAM_STORE_CALL_FREE)
        i++;
    if (i == GW_TEAM_CALLS_MAX)
        return GW_ERR_NO_ROOM;
    struct gw_team_store_work *call = &store->calls[i];
    *call = (struct gw_team_store_work){
        .call = *asked,
        .state = GW_TEAM_STORE_CALL_WAITS,
        .rank = (uint32_t)(gw_mix64(asked->key) % store->cfg.world),
    };
    struct gw_team_store_pair *pair = pair_of(store, call);
    if (pair->first)
        pair->last->next = call;
    else
        pair->first = call;
    pair->last = call;
    store->call_count++;
    return GW_OK;
}

void gw_team_store_calls_advance(struct gw_team_store *store, gw_time now)
{
    for (uint32_t i = 0; store->call_count && i < GW_TEAM_CALLS_MAX; i++) {
        struct gw_team_store_work *call = &store->calls[i];
        bool is_first =
            call->state != GW_TEAM_STORE_CALL_FREE && pair_of(store, call)->first == call;
        if (is_first && call->state == GW_TEAM_STORE_CALL_GRANTED)
            send_data(store, call, now);
        else if (is_first && call->state == GW_TEAM_STORE_CALL_WAITS &&
                 call->rank == store->cfg.rank)
            start_here(store, call);
        else if (is_first && call->state == GW_TEAM_STORE_CALL_WAITS)
            start_there(store, call, now);
    }
}

/* The owner is done with the request, and has it, whether or not it could say so. */
static void finish(struct gw_team_store *store, struct gw_team_store_work *call)
{
    struct gw_team_store_pair *pair = pair_of(store, call);
    if (pair->is_requesting)
        gw_team_forget(store->cfg.comm, &pair->request, sizeof(pair->request));
    pair->is_requesting = false;
    pair->requests++;
    if (call->state == GW_TEAM_STORE_CALL_SENDS)
        call->is_answered = true;
    else
        end_call(store, call);
}

/* False: the answer does not go with what was asked. */
static bool take_answer(struct gw_team_store *store, struct gw_team_store_work *call,
                        uint64_t bytes, gw_time now)
{
    struct gw_team_store_pair *pair = pair_of(store, call);
    const struct gw_team_store_message *answer = &pair->answer;
    const struct gw_team_store_call *asked = &call->call;
    struct gw_team_value_shape shape;
    uint64_t key, size = gw_team_value_bytes(&asked->shape);
    if (!gw_team_store_read(answer, bytes, &key, &shape) || key != asked->key || call->is_answered)
        return false;
    bytes -= GW_TEAM_STORE_HEADER_SIZE;
    if (answer->word == GW_TEAM_STORE_GO) {
        if (asked->is_pull || is_small(call) || call->is_granted || bytes != 0)
            return false;
        call->is_granted = true;
        call->state = GW_TEAM_STORE_CALL_GRANTED;
        gw_team_store_expect(store, call->rank,
                             gw_team_store_tag(GW_TEAM_STORE_ANSWER, pair->answers), &pair->answer,
                             GW_TEAM_STORE_MESSAGE_SIZE);
        pair->is_posted = true;
        send_data(store, call, now);
        return true;
    }
    if (answer->word == GW_TEAM_STORE_DONE) {
        if (bytes != (asked->is_pull ? size : 0) || (asked->is_pull && !is_small(call)))
            return false;
        memcpy(asked->data, answer->data, bytes);
    } else if (answer->word >= GW_TEAM_UNKNOWN_KEY && answer->word <= GW_TEAM_NO_MEMORY) {
        refuse(call, answer->word, &shape);
        if (asked->is_pull && !is_small(call))
            gw_team_forget(store->cfg.comm, asked->data, size);
    } else {
        return false;
    }
    finish(store, call);
    return true;
}

void gw_team_store_calls_event(struct gw_team_store *store, uint32_t rank,
                               const struct gw_event *event, gw_time now)
{
    struct gw_team_store_pair *pair = &store->pairs[rank];
    struct gw_team_store_work *call = pair->first;
    if (event->kind == GW_EVENT_SENT) {
        if (pair->is_requesting && event->flow == pair->request_flow) {
            pair->is_requesting = false;
        } else if (call && call->state == GW_TEAM_STORE_CALL_SENDS && event->flow == call->flow) {
            call->state = GW_TEAM_STORE_CALL_ASKED;
            if (call->is_answered)
                end_call(store, call);
        }
        return;
    }
    bool is_value = event->tag == gw_team_store_tag(GW_TEAM_STORE_VALUE, pair->requests);
    bool makes_sense = call && call->state != GW_TEAM_STORE_CALL_WAITS;
    if (makes_sense && is_value) {
        makes_sense = event->bytes == gw_team_value_bytes(&call->call.shape);
        if (makes_sense)
            finish(store, call);
    } else if (makes_sense) {
        pair->answers++;
        pair->is_posted = false;
        makes_sense = take_answer(store, call, event->bytes, now);
    }
    if (!makes_sense)
        gw_team_store_blame(store, rank, now);
}

bool gw_team_store_has_calls(const struct gw_team_store *store)
{
    return store->call_count != 0;
}

uint32_t gw_team_store_awaited(const struct gw_team_store *store)
{
    uint32_t i = 0;
    while (i < GW_TEAM_CALLS_MAX && store->calls[i].state == GW_TEAM_STORE_CALL_FREE)
        i++;
    return i < GW_TEAM_CALLS_MAX ? store->calls[i].rank : store->cfg.world;
}

void gw_team_store_drop(struct gw_team_store *store)
{
    for (uint32_t i = 0; i < GW_TEAM_CALLS_MAX; i++) {
        struct gw_team_store_work *call = &store->calls[i];
        if (call->state > GW_TEAM_STORE_CALL_WAITS)
            gw_team_forget(store->cfg.comm, call->call.data,
                           gw_team_value_bytes(&call->call.shape));
        call->state = GW_TEAM_STORE_CALL_FREE;
        pair_of(store, call)->first = NULL;
    }
    store->call_count = 0;
    gw_index_queue_clear(&store->tasks);
}

void gw_team_refusal(const struct gw_team_refusal *refusal, char *text, size_t size)
{
    static const char *const types[GW_DTYPE_SUMMABLE] = {"float32", "float16", "bfloat16", "int32"};
    const struct gw_team_value_shape *asked = &refusal->asked, *found = &refusal->found;
    const char *what = refusal->is_pull ? "pull" : "push";
    unsigned long long key = refusal->key;
    switch (refusal->why) {
    case GW_TEAM_UNKNOWN_KEY:
        snprintf(text, size, "pull of key %llu: nobody has pushed it (rank %u would keep it)", key,
                 refusal->rank);
        break;
    case GW_TEAM_OTHER_SHAPE:
        snprintf(text, size, "%s of key %llu: %llu %s, but its value at rank %u is %llu %s", what,
                 key, (unsigned long long)asked->count, types[asked->type], refusal->rank,
                 (unsigned long long)found->count, types[found->type]);
        break;
    case GW_TEAM_SUM_OVERFLOW:
        snprintf(text, size,
                 "push of key %llu: a sum of int32 does not fit an int32; the value at rank %u is "
                 "as it was",
                 key, refusal->rank);
        break;
    case GW_TEAM_NO_MEMORY:
        snprintf(text, size, "%s of key %llu: rank %u has no memory for %llu bytes", what, key,
                 refusal->rank, (unsigned long long)gw_team_value_bytes(asked));
        break;
    }
}
