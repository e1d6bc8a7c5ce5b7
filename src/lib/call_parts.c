/* The terms of calls that may lose a part; see call_parts.h. */
#include "lib/call_parts.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "core/layers.h"
#include "core/quant/importance.h"
#include "net/net_error.h"
#include "wire/wire.h"

enum {
    CLASSES = 6,        /* of layers: best effort is for who says nothing */
    LAYERS_MAX = 65536, /* more than any network has */
};

#define BOUND_MAX 0.5

/* What of a call travels in fragments. */
struct extent {
    const void *sent; /* what this rank sends of it, from its first fragment on; or NULL */
    uint64_t count;   /* elements; of a message: bytes */
    enum gw_dtype type;
    enum gw_via via;
};

size_t gw_call_parts_fragment(uint32_t mtu, enum gw_dtype type, enum gw_via via)
{
    bool by_switch = via == GW_VIA_INA && gw_dtype_by_switch(type);
    return by_switch ? mtu / GW_WIRE_VALUE_SIZE : mtu / gw_dtype_size(type);
}

static struct extent extent_of(const struct gw_call *call, const struct gw_call_parts_job *job)
{
    struct extent extent = {
        .sent = call->in,
        .count = call->count,
        .type = call->type,
        .via = GW_VIA_RING,
    };
    switch (call->kind) {
    case GW_CALL_SEND:
    case GW_CALL_RECEIVE:
        extent.type = GW_DTYPE_U8;
        break;
    case GW_CALL_REDUCE_SCATTER:
    case GW_CALL_ALLGATHER:
        extent.count *= job->world;
        break;
    case GW_CALL_BROADCAST:
        extent.sent = call->peer == job->rank ? call->out : NULL;
        break;
    case GW_CALL_ALLREDUCE:
    case GW_CALL_REDUCE:
        extent.via = call->via == GW_VIA_DEFAULT ? job->via : call->via;
        break;
    default:
        break;
    }
    return extent;
}

static int check(const struct gradwire_call_options *options, const struct gw_call *call,
                 char *error)
{
    const double bounds[] = {options->bound, options->bound_pull};
    for (int i = 0; i < 2; i++)
        if (!(bounds[i] >= 0 && bounds[i] <= BOUND_MAX))
            return gw_net_fail(error, GRADWIRE_ERR_INVALID, "%s is %g: a part from 0 to %g",
                               i ? "bound_pull" : "bound", bounds[i], BOUND_MAX);
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

/* Decides by what the application says that each fragment is worth. False: out of memory. */
static bool fill_by_worth(const struct gradwire_call_options *options, const struct extent *extent,
                          const struct gw_call_parts *parts)
{
    size_t each = parts->result.fragment, count = parts->result.count;
    gw_real *worth = malloc(count * sizeof(*worth));
    if (!worth)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t left = extent->count - i * each;
        const unsigned char *fragment = extent->sent;
        worth[i] = options->worth(fragment + i * each * gw_dtype_size(extent->type),
                                  left < each ? left : each, i, options->worth_context);
    }
    gw_importance_fill_given(worth, (uint32_t)count, 0, parts->important);
    free(worth);
    return true;
}

static void fill_by_magnitude(enum gradwire_importance importance, const struct extent *extent,
                              const struct gw_call_parts *parts)
{
    uint32_t size = gw_dtype_size(extent->type);
    const struct gw_importance_tensor tensor = {
        .kernels = gw_kernels_best(gw_cpu_features()),
        .values = extent->sent,
        .size = extent->count * size,
        .fragment_size = (uint32_t)(parts->result.fragment * size),
        .type = extent->type,
    };
    struct gw_importance rule;
    gw_importance_init(&rule, &tensor,
                       importance == GRADWIRE_IMPORTANCE_MEANS ? GW_IMPORTANCE_MEDIAN_OF_MEANS
                                                               : GW_IMPORTANCE_MEDIAN_OF_VALUES,
                       0);
    gw_importance_fill(&rule, tensor.values, tensor.size, parts->important);
}

/* Which fragments of what this rank sends are important. */
static int decide(struct gw_call_parts *parts, const struct gradwire_call_options *options,
                  const struct extent *extent, char *error)
{
    if (options->importance == GRADWIRE_IMPORTANCE_ALL || !extent->sent)
        return GRADWIRE_OK;
    bool done = true;
    parts->important = calloc((parts->result.count + 63) / 64, sizeof(*parts->important));
    if (!parts->important)
        done = false;
    else if (options->worth)
        done = fill_by_worth(options, extent, parts);
    else
        fill_by_magnitude(options->importance, extent, parts);
    if (done)
        return GRADWIRE_OK;
    free(parts->important);
    return gw_net_fail(error, GRADWIRE_ERR_NO_MEMORY, "out of memory for %zu fragments",
                       parts->result.count);
}

int gw_call_parts_begin(struct gw_call_parts *parts, const struct gradwire_call_options *options,
                        const struct gw_call_parts_job *job, struct gw_call *call, char *error)
{
    int code = check(options, call, error);
    if (code)
        return code;
    const struct extent extent = extent_of(call, job);
    size_t each = gw_call_parts_fragment(job->mtu, extent.type, extent.via);
    *parts = (struct gw_call_parts){
        .told = options->parts,
        .result = {.fragment = each, .count = (extent.count + each - 1) / each},
    };
    if (options->bound == 0 && options->bound_pull == 0 && !parts->told && !options->layers &&
        options->importance == GRADWIRE_IMPORTANCE_ALL)
        return GRADWIRE_OK;
    if (extent.count > job->largest / gw_dtype_size(extent.type))
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "%llu bytes are more than `largest` of the job, %llu",
                           (unsigned long long)(extent.count * gw_dtype_size(extent.type)),
                           (unsigned long long)job->largest);
    if (parts->told && parts->told->room < parts->result.count)
        return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                           "parts has room for %zu fragments, the call has %zu", parts->told->room,
                           parts->result.count);
    code = decide(parts, options, &extent, error);
    if (code)
        return code;
    parts->terms = (struct gw_parts){
        .bound = (gw_q16)(options->bound * GW_Q16_ONE),
        .bound_pull = (gw_q16)(options->bound_pull * GW_Q16_ONE),
        .important_first = options->important_first != 0,
        .class = options->layers ? gw_layers_class(options->layer, options->layers, CLASSES)
                                 : GW_CLASS_BEST_EFFORT,
        .important = parts->important,
        .arrived = parts->told ? parts->told->arrived : NULL,
        .counts = parts->told ? parts->told->contributors : NULL,
    };
    call->parts = &parts->terms;
    return GRADWIRE_OK;
}

void gw_call_parts_end(struct gw_call_parts *parts, uint64_t missing)
{
    free(parts->important);
    parts->important = NULL;
    if (!parts->told)
        return;
    parts->told->fragment = parts->result.fragment;
    parts->told->count = parts->result.count;
    parts->told->missing = missing;
    parts->told = NULL;
}
