/* Messages of which a part may be missing; see coll_parts.h. */
#include "core/ranks/coll_parts.h"

#include <string.h>

#include "base/arena.h"
#include "base/bits.h"
#include "core/quant/combine.h"

/* A message and where its fragments are. */
struct fragments {
    const struct gw_coll_message *message;
    uint64_t first;   /* fragment of `out` */
    uint32_t count;   /* of the message */
    uint32_t unit;    /* elements of one, but for the last */
    uint16_t *counts; /* of what the message is combined with, and of what that gives; NULL: of own
                         values alone, and nobody asks */
};

static uint32_t packets_of(const struct gw_coll_run_cfg *cfg)
{
    return cfg->segment / cfg->mtu;
}

static size_t place_of(const struct gw_coll_run *run, const struct gw_coll_place *place)
{
    return (size_t)(place - run->places);
}

static uint64_t *arrived_of(const struct gw_coll_run *run, const struct gw_coll_place *place)
{
    return run->parts.arrived + place_of(run, place) * gw_bit_words(run->parts.packets);
}

static uint16_t *notes_of(const struct gw_coll_run *run, const struct gw_coll_place *place)
{
    return run->parts.notes + place_of(run, place) * run->parts.packets;
}

void gw_coll_parts_carve(struct gw_coll_run *run, const struct gw_coll_run_cfg *cfg,
                         uint32_t places, struct gw_arena *arena)
{
    struct gw_coll_run_parts *parts = &run->parts;
    if (!cfg->parts_transport)
        return;
    const struct gw_coll_run_cfg agreement = gw_coll_agreement_cfg(cfg);
    uint32_t packets = cfg->kernels ? packets_of(cfg) : 0;
    size_t words = gw_bit_words(packets);
    parts->packets = packets;
    parts->arrived = gw_arena_take(arena, places * words * sizeof(*parts->arrived));
    parts->notes = gw_arena_take(arena, (size_t)places * packets * sizeof(*parts->notes));
    parts->important = gw_arena_take(arena, cfg->flows * gw_bit_words(packets_of(cfg)) *
                                                sizeof(*parts->important));
    parts->ones = gw_arena_take(arena, packets * sizeof(*parts->ones));
    parts->agreement = gw_arena_take(arena, gw_coll_run_size(&agreement));
}

void gw_coll_parts_init(struct gw_coll_run *run)
{
    const struct gw_coll_run_cfg agreement = gw_coll_agreement_cfg(&run->cfg);
    for (uint32_t i = 0; i < run->parts.packets; i++)
        run->parts.ones[i] = 1;
    run->parts.agreement = gw_coll_run_init(run->parts.agreement, &agreement, run->ep);
}

bool gw_coll_parts_are_valid(const struct gw_coll_run *run, const struct gw_coll_call *call)
{
    const struct gw_parts *parts = call->parts;
    const struct gw_coll_run_cfg *cfg = &run->cfg;
    bool has_out = call->coll->kind != GW_COLL_REDUCE || cfg->rank == call->root;
    bool has_room = !cfg->kernels || !has_out || (parts->arrived && parts->counts);
    return cfg->parts_transport && has_room && !call->coll->exchanges && parts->bound >= 0 &&
           parts->bound < GW_Q16_ONE && parts->bound_pull >= 0 && parts->bound_pull < GW_Q16_ONE &&
           parts->class <= GW_CLASS_DATA_MAX &&
           (uint64_t)call->fragment * gw_dtype_size(call->tensor.type) == cfg->mtu;
}

/* What the worker has of results before anything has arrived: all, if it is the root of a
 * broadcast, its part of an all-gather; else nothing. */
static bool has_from_start(const struct gw_coll_run *run, uint64_t fragment)
{
    const struct gw_coll_call *call = &run->call;
    if (run->cfg.world == 1)
        return true;
    if (call->coll->kind == GW_COLL_BROADCAST)
        return run->cfg.rank == call->root;
    return call->coll->kind == GW_COLL_ALLGATHER && fragment / run->row.part_units == run->cfg.rank;
}

/* What may be missing of a message whose values are combined, and of one with results. */
static gw_q16 bound_of_adds(const struct gw_coll_run *run)
{
    return run->parts.terms.bound / run->call.coll->hops(run->cfg.world);
}

static gw_q16 bound_of_copies(const struct gw_coll_run *run)
{
    uint32_t world = run->cfg.world;
    return run->parts.terms.bound_pull /
           (run->parts.agrees ? world - 1 : run->call.coll->hops(world));
}

void gw_coll_parts_begin(struct gw_coll_run *run)
{
    struct gw_coll_run_parts *parts = &run->parts;
    struct gw_parts *terms = &parts->terms;
    struct gw_coll_call agreement;
    uint32_t world = run->cfg.world;
    *terms = *run->call.parts;
    run->call.parts = terms;
    parts->is_ended = false;
    parts->agrees = gw_coll_call_agrees(&run->call, world, &agreement);
    if (world > 1) {
        parts->adds = gw_finish_within(bound_of_adds(run));
        parts->copies = gw_finish_within(bound_of_copies(run));
    }
    if (!run->cfg.kernels || !terms->arrived || !terms->counts)
        return;
    uint64_t fragments = gw_coll_call_fragments(&run->call, world);
    bool has_own = run->call.coll->kind == GW_COLL_ALLREDUCE;
    memset(terms->arrived, 0, gw_bit_words(fragments) * sizeof(*terms->arrived));
    for (uint64_t i = 0; i < fragments; i++) {
        bool is_there = has_from_start(run, i);
        if (is_there)
            gw_bit_set(terms->arrived, i);
        terms->counts[i] = is_there || has_own;
    }
}

bool gw_coll_parts_fit(const struct gw_coll_run *run, uint64_t bytes, const struct gw_event *event)
{
    return gw_parts_fit(bytes, run->cfg.mtu, event->bytes, event->missing);
}

static bool is_copy(const struct gw_coll_message *message)
{
    return message->merge == GW_COLL_COPY;
}

void gw_coll_parts_expect(struct gw_coll_run *run, const struct gw_coll_place *place,
                          const struct gw_coll_message *message, struct gw_expect *expect)
{
    expect->finish = is_copy(message) ? &run->parts.copies : &run->parts.adds;
    expect->arrived = arrived_of(run, place);
    expect->notes = notes_of(run, place);
    expect->packets_max = run->parts.packets;
}

/* The fragment of `in` that a message which is sent begins with; UINT64_MAX: `in` has none of it.
 */
static uint64_t fragment_of_in(const struct gw_coll_run *run, const struct gw_coll_message *message)
{
    const struct gw_coll_row *row = &run->row;
    uint64_t part = message->first / row->part, at = message->first % row->part / row->unit;
    if (run->call.coll->kind == GW_COLL_ALLGATHER)
        return part == run->cfg.rank ? at : UINT64_MAX;
    return part * row->part_units + at;
}

/* The bits of a message's packets, from the bits of the tensor. */
static const uint64_t *importance_of(struct gw_coll_run *run, uint32_t slot,
                                     const struct gw_coll_message *message)
{
    const uint64_t *all = run->parts.terms.important;
    uint64_t first = all ? fragment_of_in(run, message) : UINT64_MAX;
    if (first == UINT64_MAX)
        return NULL;
    uint32_t packets = (message->bytes + run->cfg.mtu - 1) / run->cfg.mtu;
    uint64_t *bits = run->parts.important + (size_t)slot * gw_bit_words(packets_of(&run->cfg));
    memset(bits, 0, gw_bit_words(packets) * sizeof(*bits));
    for (uint32_t i = 0; i < packets; i++)
        if (gw_bit_is_set(all, first + i))
            gw_bit_set(bits, i);
    return bits;
}

void gw_coll_parts_send(struct gw_coll_run *run, uint32_t slot, const struct gw_coll_place *place,
                        const struct gw_coll_message *message, struct gw_send *send)
{
    const struct gw_parts *terms = &run->parts.terms;
    send->transport = run->cfg.parts_transport;
    send->class = terms->class;
    send->bound = is_copy(message) ? bound_of_copies(run) : bound_of_adds(run);
    send->important_first = terms->important_first;
    send->important = importance_of(run, slot, message);
    send->importance = (struct gw_importance_terms){
        .rule = (enum gw_importance_rule)terms->importance,
        .type = run->call.tensor.type,
        .kernels = run->cfg.kernels,
    };
    if (!run->cfg.kernels)
        return;
    if (place)
        send->notes = notes_of(run, place);
    else if (run->keeps_own)
        send->notes = run->parts.ones;
    else
        send->notes =
            terms->counts + gw_coll_call_fragment(&run->call, run->cfg.rank, message->first);
}

/* Elements of the fragments [from, to) of a message, and where they begin. */
static uint32_t elements_of(const struct fragments *all, uint32_t from, uint32_t to)
{
    uint32_t end = to == all->count ? all->message->count : to * all->unit;
    return end - from * all->unit;
}

/* What is combined of a message: to = to op other. */
struct operands {
    unsigned char *to;
    const unsigned char *other;
    const unsigned char *own; /* what `to` gets where nothing has arrived; NULL: it has that */
};

/* Divides what no other value came to. */
static bool divide(const struct gw_coll_run *run, unsigned char *to, uint32_t elements,
                   uint32_t shares)
{
    static const unsigned char zeros[1024];
    const struct gw_tensor *tensor = &run->call.tensor;
    const struct gw_combination how = {.op = tensor->op, .type = tensor->type, .shares = shares};
    uint32_t size = gw_dtype_size(tensor->type), most = sizeof(zeros) / size;
    for (uint32_t done = 0; done < elements; done += most) {
        uint32_t count = elements - done < most ? elements - done : most;
        if (!gw_combine(run->cfg.kernels, &how, to + (size_t)done * size, zeros, count))
            return false;
    }
    return true;
}

/* The fragments [from, to), which all have or have not arrived, and are of `count` workers then. */
static bool combine_alike(const struct gw_coll_run *run, const struct fragments *all,
                          const struct operands *operands, uint32_t from, uint32_t to,
                          bool is_there, uint32_t count)
{
    const struct gw_tensor *tensor = &run->call.tensor;
    uint32_t size = gw_dtype_size(tensor->type), elements = elements_of(all, from, to);
    size_t offset = (size_t)from * all->unit * size;
    bool is_share = tensor->op == GW_OP_AVERAGE && all->message->merge == GW_COLL_COMPLETE;
    const struct gw_combination how = {
        .op = tensor->op, .type = tensor->type, .shares = is_share ? count : 1};
    unsigned char *out = operands->to + offset;
    if (is_there)
        return gw_combine(run->cfg.kernels, &how, out, operands->other + offset, elements);
    if (operands->own)
        memcpy(out, operands->own + offset, (size_t)elements * size);
    return how.shares == 1 || divide(run, out, elements, how.shares);
}

/* The count of a fragment that the note says, if it is one of a result or value. */
static uint32_t count_of(const struct gw_coll_run *run, uint16_t note)
{
    uint32_t most = run->cfg.world;
    if (note & GW_COLL_NOTE_NONE)
        return 0;
    return note < most ? note : most;
}

/* Combines what has arrived with the worker's own values, as many fragments at once as are alike.
 */
static bool combine(struct gw_coll_run *run, const struct gw_coll_place *place,
                    const struct fragments *all, const struct operands *operands)
{
    const uint64_t *arrived = arrived_of(run, place);
    const uint16_t *notes = notes_of(run, place);
    uint32_t world = run->cfg.world, from = 0, alike = 0;
    bool was_there = false;
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t more = gw_bit_is_set(arrived, i) ? count_of(run, notes[i]) : 0;
        uint32_t count = more + (run->keeps_own ? 1 : all->counts[i]);
        count = count < world ? count : world;
        all->counts[i] = (uint16_t)count;
        bool is_there = more != 0;
        if (i > from && (is_there != was_there || count != alike)) {
            if (!combine_alike(run, all, operands, from, i, was_there, alike))
                return false;
            from = i;
        }
        was_there = is_there;
        alike = count;
    }
    return combine_alike(run, all, operands, from, all->count, was_there, alike);
}

/* Takes note of the results that have arrived, and puts them in their place if they are elsewhere.
 */
static void copy(struct gw_coll_run *run, const struct gw_coll_place *place,
                 const struct fragments *all, unsigned char *to, const unsigned char *from)
{
    const uint64_t *arrived = arrived_of(run, place);
    const uint16_t *notes = notes_of(run, place);
    uint32_t size = run->row.element_size;
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t count = gw_bit_is_set(arrived, i) ? count_of(run, notes[i]) : 0;
        size_t offset = (size_t)i * all->unit * size;
        if (count == 0) {
            all->counts[i] |= GW_COLL_NOTE_NONE;
            continue;
        }
        all->counts[i] = (uint16_t)count;
        gw_bit_set(run->parts.terms.arrived, all->first + i);
        if (to != from)
            memcpy(to + offset, from + offset, (size_t)elements_of(all, i, i + 1) * size);
    }
}

bool gw_coll_parts_take(struct gw_coll_run *run, const struct gw_coll_place *place,
                        const struct gw_coll_message *message)
{
    struct gw_coll_run_parts *parts = &run->parts;
    bool stays = gw_coll_run_stays(run, message);
    struct fragments all = {
        .message = message,
        .first = stays ? 0 : gw_coll_call_fragment(&run->call, run->cfg.rank, message->first),
        .count = (message->bytes + run->cfg.mtu - 1) / run->cfg.mtu,
        .unit = run->row.unit,
    };
    all.counts = stays ? notes_of(run, place) : parts->terms.counts + all.first;
    unsigned char *arrived = gw_coll_run_memory(run, place, message);
    unsigned char *out =
        stays ? arrived : gw_coll_call_out(&run->call, run->cfg.rank, message->first);
    if (is_copy(message)) {
        copy(run, place, &all, out, arrived);
        return true;
    }
    const unsigned char *in = gw_coll_call_in(&run->call, message->first);
    struct operands operands = {.to = out, .other = arrived == out ? in : arrived};
    operands.own = arrived == out ? in : NULL;
    if (!combine(run, place, &all, &operands))
        return false;
    for (uint32_t i = 0; message->merge == GW_COLL_COMPLETE && i < all.count; i++)
        gw_bit_set(parts->terms.arrived, all.first + i);
    return true;
}

/* The elements of `out` that a fragment has. */
static uint64_t elements_at(const struct gw_coll_run *run, uint64_t fragment, uint32_t *count)
{
    const struct gw_coll_row *row = &run->row;
    uint64_t at = fragment % row->part_units * row->unit, left = row->part - at;
    *count = left < row->unit ? (uint32_t)left : row->unit;
    return fragment / row->part_units * row->part + at;
}

/* What becomes of a fragment without a result. */
static void leave_out(struct gw_coll_run *run, uint64_t fragment)
{
    const struct gw_parts *terms = &run->parts.terms;
    uint32_t elements, size = run->row.element_size;
    uint64_t first = elements_at(run, fragment, &elements);
    unsigned char *out = (unsigned char *)run->call.tensor.out + first * size;
    uint32_t count = terms->counts[fragment] & ~(uint32_t)GW_COLL_NOTE_NONE;
    bool is_average = run->call.tensor.op == GW_OP_AVERAGE;
    if (!terms->keeps_own) {
        memset(out, 0, (size_t)elements * size);
        count = 0;
    } else if (is_average && count > 1) {
        divide(run, out, elements, count); /* what has come to be summed here */
    }
    terms->counts[fragment] = (uint16_t)count;
}

uint64_t gw_coll_parts_untrue(const struct gw_coll_run *run)
{
    const struct gw_parts *terms = &run->parts.terms;
    uint64_t fragments = gw_coll_call_fragments(&run->call, run->cfg.world), i = 0;
    while (run->cfg.kernels && i < fragments &&
           !(gw_bit_is_set(terms->arrived, i) && terms->counts[i] & GW_COLL_NOTE_NONE))
        i++;
    return run->cfg.kernels ? i : fragments;
}

uint64_t gw_coll_parts_end(struct gw_coll_run *run)
{
    struct gw_parts *terms = &run->parts.terms;
    const struct gw_coll_call *call = &run->call;
    uint64_t missing = 0;
    if (!run->cfg.kernels)
        return run->status.missing;
    if (gw_coll_keeps_own(call->coll->kind))
        return 0;
    uint64_t fragments = gw_coll_call_fragments(call, run->cfg.world);
    for (uint64_t i = 0; i < fragments; i++) {
        if (gw_bit_is_set(terms->arrived, i))
            continue;
        leave_out(run, i);
        missing++;
    }
    return missing;
}

bool gw_coll_parts_may_miss(const struct gw_coll_run *run, uint64_t missing)
{
    uint64_t fragments = gw_coll_call_fragments(&run->call, run->cfg.world);
    return (unsigned __int128)missing << 16 <=
           (unsigned __int128)run->parts.terms.bound_pull * fragments;
}
