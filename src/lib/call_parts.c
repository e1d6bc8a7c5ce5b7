/* The terms of calls that may lose a part; see call_parts.h. */
#include "lib/call_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "core/layers.h"
#include "core/quant/importance.h"
#include "net/net_error.h"
#include "wire/wire.h"

enum {
    CLASSES = 6,        /* of layers: best effort is for who says nothing */
    LAYERS_MAX = 65536, /* more than any network has */
    DIGITS_MIN = 6,     /* of a number, ... */
    DIGITS_MAX = 17,    /* ... with which every double is another text, ... */
    NUMBER_MAX = 32,    /* ... of fewer characters */
};

#define BOUND_MAX  0.5
#define BOUND_UNIT (1.0 / GW_Q16_ONE) /* what is less would be taken for 0 */

/* What of a call travels in fragments: parts of equally many, each of which begins with one. */
struct extent {
    const unsigned char *sent; /* what this rank sends of it, from its first fragment on; or NULL */
    uint64_t sent_parts;       /* there */
    uint64_t told_parts;       /* that the application is told of */
    uint64_t count;            /* elements of a part; of a message: bytes */
    enum gw_dtype type;
    uint64_t units; /* fragments of a part */
    uint32_t each;  /* elements of a fragment */
};

size_t gw_call_parts_fragment(uint32_t mtu, enum gw_dtype type, enum gw_via via)
{
    bool by_switch = via == GW_VIA_INA && gw_dtype_by_switch(type);
    return by_switch ? mtu / GW_WIRE_VALUE_SIZE : mtu / gw_dtype_size(type);
}

/* How fragments of the call travel; only all-reduces have more than one way. */
static enum gw_via via_of(const struct gw_call *call)
{
    if (call->kind != GW_CALL_ALLREDUCE ||
        (call->via == GW_VIA_INA && !gw_via_can(GW_VIA_INA, call)))
        return GW_VIA_RING;
    return call->via;
}

static struct extent extent_of(const struct gw_call *call, const struct gw_call_parts_job *job)
{
    struct extent extent = {
        .sent = call->in,
        .sent_parts = 1,
        .told_parts = 1,
        .count = call->count,
        .type = call->type,
    };
    switch (call->kind) {
    case GW_CALL_SEND:
    case GW_CALL_RECEIVE:
        extent.type = GW_DTYPE_U8;
        break;
    case GW_CALL_REDUCE_SCATTER:
        extent.sent_parts = job->world;
        break;
    case GW_CALL_ALLGATHER:
        extent.told_parts = job->world;
        break;
    case GW_CALL_BROADCAST:
        extent.sent = call->peer == job->rank ? call->out : NULL;
        break;
    default:
        break;
    }
    extent.each = (uint32_t)gw_call_parts_fragment(job->mtu, extent.type, via_of(call));
    extent.units = extent.count / extent.each + (extent.count % extent.each != 0);
    return extent;
}

/* With as many digits as tell it from all other numbers. */
static const char *text_of(double number, char text[NUMBER_MAX])
{
    for (int digits = DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
        snprintf(text, NUMBER_MAX, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return text;
}

static int check(const struct gradwire_call_options *options, const struct gw_call *call,
                 char *error)
{
    char text[NUMBER_MAX];
    const double bounds[] = {options->bound, options->bound_pull};
    for (int i = 0; i < 2; i++)
        if (bounds[i] != 0 && !(bounds[i] >= BOUND_UNIT && bounds[i] <= BOUND_MAX))
            return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                               "%s is %s: expected 0, or a part from 1/65536 to %g",
                               i ? "bound_pull" : "bound", text_of(bounds[i], text), BOUND_MAX);
    if (options->layers > LAYERS_MAX || (options->layers && options->layer >= options->layers))
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "layer is %u of %u: they are counted from 0, and at most %d",
                           options->layer, options->layers, LAYERS_MAX);
    if ((uint32_t)options->importance > GRADWIRE_IMPORTANCE_WORTH)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID, "importance %d is not known",
                           (int)options->importance);
    if ((options->importance == GRADWIRE_IMPORTANCE_WORTH) != (options->worth != NULL))
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "worth belongs to GRADWIRE_IMPORTANCE_WORTH, and it to worth");
    bool by_magnitude = options->importance == GRADWIRE_IMPORTANCE_MEANS ||
                        options->importance == GRADWIRE_IMPORTANCE_VALUES;
    if (by_magnitude && (call->kind == GW_CALL_SEND || call->kind == GW_CALL_RECEIVE))
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "a message has no type: its fragments have no magnitude, but may have a "
                           "worth");
    return GRADWIRE_OK;
}

/* Fragment `i` of what is sent. */
static const void *fragment_of(const struct extent *extent, uint64_t i, uint32_t *count)
{
    uint64_t first = i % extent->units * extent->each, left = extent->count - first;
    uint64_t at = i / extent->units * extent->count + first;
    *count = left < extent->each ? (uint32_t)left : extent->each;
    return extent->sent + at * gw_dtype_size(extent->type);
}

/* Decides by what the application says that each fragment is worth. False: out of memory. */
static bool fill_by_worth(const struct gradwire_call_options *options, const struct extent *extent,
                          uint64_t *important)
{
    uint64_t fragments = extent->sent_parts * extent->units;
    gw_real *worth = malloc(fragments * sizeof(*worth));
    if (!worth)
        return false;
    for (uint64_t i = 0; i < fragments; i++) {
        uint32_t count;
        const void *fragment = fragment_of(extent, i, &count);
        worth[i] = options->worth(fragment, count, i, options->worth_context);
    }
    gw_importance_fill_given(worth, (uint32_t)fragments, 0, important);
    free(worth);
    return true;
}

/* The rule by which the core decides what is not known before. */
static enum gw_importance_rule rule_of(enum gradwire_importance importance)
{
    switch (importance) {
    case GRADWIRE_IMPORTANCE_MEANS:
        return GW_IMPORTANCE_MEDIAN_OF_MEANS;
    case GRADWIRE_IMPORTANCE_VALUES:
        return GW_IMPORTANCE_MEDIAN_OF_VALUES;
    default:
        return GW_IMPORTANCE_ALL;
    }
}

/* Which fragments of what this rank sends are important, if only the application knows. */
static int decide(struct gw_call_parts *parts, const struct gradwire_call_options *options,
                  const struct extent *extent, char *error)
{
    uint64_t fragments = extent->sent_parts * extent->units;
    if (!options->worth || !extent->sent || !fragments)
        return GRADWIRE_OK;
    parts->important = calloc(gw_bit_words(fragments), sizeof(*parts->important));
    if (parts->important && fill_by_worth(options, extent, parts->important))
        return GRADWIRE_OK;
    free(parts->important);
    parts->important = NULL;
    return gw_net_fail(error, GRADWIRE_ERR_NO_MEMORY, "out of memory for %llu fragments",
                       (unsigned long long)fragments);
}

/* Whether the job's `largest` counts: not for collectives of which nothing may be missing, which
 * travel in segments. */
static bool is_limited(const struct gradwire_call_options *options, const struct gw_call *call)
{
    return options->bound != 0 || options->bound_pull != 0 || options->worth ||
           call->kind > GW_CALL_BARRIER;
}

/* Whether the job can do without parts of such a call. */
static int check_call(const struct gradwire_call_options *options, const struct gw_call *call,
                      const struct gw_call_parts_job *job, const struct extent *extent, char *error)
{
    uint32_t size = gw_dtype_size(extent->type);
    uint64_t parts =
        extent->sent_parts > extent->told_parts ? extent->sent_parts : extent->told_parts;
    if (is_limited(options, call) && extent->count > job->largest / size / parts)
        return gw_net_fail(
            error, GRADWIRE_ERR_INVALID, "%llu bytes are more than `largest` of the job, %llu",
            (unsigned long long)(extent->count * size * parts), (unsigned long long)job->largest);
    if (job->mtu % size)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "fragments of %u bytes, as `values` of the job says, are not whole "
                           "elements of %u bytes",
                           job->mtu, size);
    if (via_of(call) == GW_VIA_PS && job->world > GW_COMMUNICATOR_DIRECT_MAX)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "via ps a call of %u ranks has no bound: at most %d, or another via",
                           job->world, GW_COMMUNICATOR_DIRECT_MAX);
    return GRADWIRE_OK;
}

/* Whether the call is one like any other, in all that options say of parts. */
static bool is_ordinary(const struct gradwire_call_options *options)
{
    return options->bound == 0 && options->bound_pull == 0 && !options->parts && !options->layers &&
           options->importance == GRADWIRE_IMPORTANCE_ALL;
}

int gw_call_parts_begin(struct gw_call_parts *parts, const struct gradwire_call_options *options,
                        const struct gw_call_parts_job *job, struct gw_call *call, char *error)
{
    int code = check(options, call, error);
    if (code)
        return code;
    *parts = (struct gw_call_parts){.told = NULL};
    if (is_ordinary(options))
        return GRADWIRE_OK;
    if (call->kind == GW_CALL_BARRIER)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID, "a barrier has no parts, and no bound");
    const struct extent extent = extent_of(call, job);
    code = check_call(options, call, job, &extent, error);
    if (code)
        return code;
    uint64_t fragments = extent.told_parts * extent.units;
    const struct gradwire_parts *told = options->parts;
    if (told && (told->arrived || told->contributors) && told->room < fragments)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "parts has room for %zu fragments, the call has %llu", told->room,
                           (unsigned long long)fragments);
    code = decide(parts, options, &extent, error);
    if (code)
        return code;
    parts->told = options->parts;
    parts->result = (struct gradwire_parts){.fragment = extent.each, .count = fragments};
    parts->terms = (struct gw_parts){
        .bound = (gw_q16)(options->bound * GW_Q16_ONE),
        .bound_pull = (gw_q16)(options->bound_pull * GW_Q16_ONE),
        .keeps_own = options->keeps_own != 0,
        .important_first = options->important_first != 0,
        .class = options->layers ? gw_layers_class(options->layer, options->layers, CLASSES)
                                 : GW_CLASS_BEST_EFFORT,
        .importance = (uint8_t)rule_of(options->importance),
        .important = parts->important,
        .arrived = told ? told->arrived : NULL,
        .counts = told ? told->contributors : NULL,
    };
    call->parts = &parts->terms;
    return GRADWIRE_OK;
}

bool gw_call_parts_tells(const struct gw_call_parts *parts, const struct gradwire_parts *told)
{
    if (!parts->told)
        return false;
    return parts->told == told || (told->arrived && told->arrived == parts->terms.arrived) ||
           (told->contributors && told->contributors == parts->terms.counts);
}

void gw_call_parts_tell_all(struct gw_call_parts *parts, uint32_t world)
{
    const uint64_t count = parts->result.count;
    for (uint64_t i = 0; parts->terms.counts && i < count; i++)
        parts->terms.counts[i] = (uint16_t)world;
    if (parts->terms.arrived)
        gw_bits_fill(parts->terms.arrived, count);
    parts->terms.counts = NULL;
    parts->terms.arrived = NULL;
}

void gw_call_parts_end(struct gw_call_parts *parts, uint64_t bytes, uint64_t missing)
{
    free(parts->important);
    parts->important = NULL;
    if (!parts->told)
        return;
    parts->told->fragment = parts->result.fragment;
    parts->told->count = parts->result.count;
    if (bytes) /* all that have arrived are full, but the message's last one */
        parts->told->count =
            bytes / parts->result.fragment + (bytes % parts->result.fragment != 0) + missing;
    parts->told->missing = missing;
    parts->told = NULL;
}
