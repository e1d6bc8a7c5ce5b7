/*
 * Compute times; see compute.h.
 *
 * Invariant: the forward times of a plan's layers add up to its forward time, and the backward
 * times likewise, exactly.
 */
#include "workload/model/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "topo/memory.h"

#define FORWARD_FLOOR (20 * GW_US) /* launching a kernel and passing over memory (own choice) */
#define ITERATION_MAX (3600 * GW_S)

enum {
    PASSES = 3, /* forward is one of them, backward two: it has two products for each of forward */
    COMPRESSION_MIN = 65536 / 16,
};

enum device {
    DEVICE_2080TI,
    DEVICE_V100,
    DEVICE_NONE,
    DEVICE_COUNT,
};

static const char *const devices[] = {
    [DEVICE_2080TI] = "2080Ti",
    [DEVICE_V100] = "V100",
    [DEVICE_NONE] = "none",
    [DEVICE_COUNT] = NULL,
};

/*
 * Samples per second of one device, in 32-bit floats. ResNet-50, ResNet-152 and Inception-v3:
 * Lambda Labs' benchmark of the 2080 Ti (TensorFlow 1.12). VGG16 and AlexNet: commonly reported;
 * VGG16's agrees with the 159.3 images/s of a worker in ATP, appendix D.2. BERT-base, sequences of
 * 384: own choice within the 35 to 40 that are reported for the V100, on the 2080 Ti less by
 * ResNet-50's ratio. The others: as many MACs per second as `like`.
 */
static const struct throughput {
    const char *model;
    const char *like;
    uint32_t per_s[DEVICE_NONE];
} throughputs[] = {
    {.model = "resnet50", .per_s = {294, 405}}, /* also of a model that is not here */
    {.model = "resnet152", .per_s = {110, 155}},
    {.model = "inception_v3", .per_s = {194, 259}},
    {.model = "vgg16", .per_s = {170, 235}},
    {.model = "alexnet", .per_s = {3500, 4800}},
    {.model = "bert_base", .per_s = {27, 37}},
    {.model = "vgg11", .like = "vgg16"},
    {.model = "vgg13", .like = "vgg16"},
    {.model = "vgg19", .like = "vgg16"},
    {.model = "inception_v3_aux", .like = "inception_v3"},
    {.model = "googlenet", .like = "inception_v3"},
    {.model = "bert_large", .like = "bert_base"},
    {.model = "transformer_base", .like = "bert_base"},
};

const char *const *gw_compute_devices(void)
{
    return devices;
}

/* The row of a model, or the first one. */
static const struct throughput *find_throughput(const char *model)
{
    for (uint32_t i = 0; i < sizeof(throughputs) / sizeof(throughputs[0]); i++)
        if (strcmp(throughputs[i].model, model) == 0)
            return &throughputs[i];
    return &throughputs[0];
}

static int refuse_device(const char *device, char *why, uint32_t why_size)
{
    int used = snprintf(why, why_size, "device: unknown: %s; expected", device);
    for (uint32_t i = 0; devices[i]; i++)
        if (used >= 0 && (uint32_t)used < why_size)
            used +=
                snprintf(why + used, why_size - (uint32_t)used, "%s %s", i ? "," : "", devices[i]);
    return GW_ERR_UNKNOWN;
}

int gw_compute_rate(gw_q16 *rate, const struct gw_model *model, const char *device, char *why,
                    uint32_t why_size)
{
    uint32_t d = 0;
    while (devices[d] && strcmp(devices[d], device) != 0)
        d++;
    *rate = 0;
    if (d == DEVICE_NONE)
        return GW_OK;
    if (d == DEVICE_COUNT)
        return refuse_device(device, why, why_size);
    const struct throughput *row = find_throughput(model->name);
    if (row->like)
        row = find_throughput(row->like);
    *rate = row->per_s[d] * GW_Q16_ONE;
    if (strcmp(row->model, model->name) == 0)
        return GW_OK;
    if (model->macs == 0) {
        snprintf(why, why_size,
                 "device: %s has no macs to tell its speed from; give the samples "
                 "per second instead",
                 model->name);
        return GW_ERR_INVALID;
    }
    struct gw_model known;
    int error = gw_model_load(&known, row->model, why, why_size);
    GW_ASSERT(!error);
    unsigned __int128 work = (unsigned __int128)*rate * known.macs;
    *rate = (gw_q16)((work + model->macs / 2) / model->macs);
    gw_model_free(&known);
    return GW_OK;
}

/* Divides `total` among the layers by their MACs, none below `floor`. */
static void divide(const struct gw_model *model, gw_time total, gw_time floor, gw_time times[])
{
    uint32_t count = model->layer_count;
    bool is_equal = model->macs == 0 || (unsigned __int128)count * floor >= total;
    unsigned __int128 rest = total, sum = is_equal ? count : model->macs, passed = 0;
    for (uint32_t l = 0; l < count; l++)
        times[l] = 0; /* not at the floor, so far */
    /* Who takes the floor leaves less to the others, and so may bring some of them down to it. */
    for (bool is_changed = !is_equal; is_changed;) {
        unsigned __int128 time = rest, macs = sum;
        is_changed = false;
        for (uint32_t l = 0; l < count; l++) {
            if (times[l] || model->layers[l].macs * time >= floor * macs)
                continue;
            times[l] = floor;
            rest -= floor;
            sum -= model->layers[l].macs;
            is_changed = true;
        }
    }
    for (uint32_t l = 0; l < count; l++) {
        if (times[l])
            continue;
        gw_time begin = (gw_time)(passed * rest / sum);
        passed += is_equal ? 1 : model->layers[l].macs;
        times[l] = (gw_time)(passed * rest / sum) - begin;
    }
}

/* Time of an iteration, 0 on a device that takes none. */
static int iteration_time(gw_time *time, const struct gw_model *model,
                          const struct gw_plan_cfg *cfg, char *why, uint32_t why_size)
{
    gw_q16 rate;
    int error = gw_compute_rate(&rate, model, cfg->device, why, why_size);
    if (cfg->images_per_s < 0) {
        snprintf(why, why_size, "images_per_s must not be negative");
        return GW_ERR_RANGE;
    }
    if (cfg->images_per_s > 0) {
        rate = cfg->images_per_s;
        error = error == GW_ERR_INVALID ? GW_OK : error; /* its speed is not asked for */
    }
    *time = 0;
    if (error || rate == 0)
        return error;
    unsigned __int128 work = (unsigned __int128)cfg->batch * GW_S * GW_Q16_ONE;
    unsigned __int128 whole = (work + (uint64_t)rate / 2) / (uint64_t)rate;
    if (whole > ITERATION_MAX) {
        snprintf(why, why_size, "images_per_s: %u of %s take longer than an hour", cfg->batch,
                 model->name);
        return GW_ERR_RANGE;
    }
    *time = (gw_time)whole;
    return GW_OK;
}

/* What travels of so many parameters. */
static uint64_t compressed(uint64_t params, gw_q16 compression)
{
    unsigned __int128 bytes = (unsigned __int128)params * 4 * (uint64_t)compression;
    return (uint64_t)((bytes + 4 * GW_Q16_ONE - 1) / (4 * GW_Q16_ONE) * 4);
}

static void add_tensor(struct gw_plan *plan, uint32_t layer, uint64_t bytes)
{
    plan->tensors[plan->tensor_count++] = (struct gw_plan_tensor){.layer = layer, .bytes = bytes};
    plan->layers[layer].tensor_count++;
    plan->bytes += bytes;
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(gw_memory_zeroed(size, 1), text, size);
}

int gw_plan_make(struct gw_plan *plan, const struct gw_model *model, const struct gw_plan_cfg *cfg,
                 char *why, uint32_t why_size)
{
    gw_time time;
    *plan = (struct gw_plan){0};
    if (cfg->batch == 0 || cfg->batch > GW_PLAN_BATCH_MAX) {
        snprintf(why, why_size, "batch must be from 1 to %d, not %u", GW_PLAN_BATCH_MAX,
                 cfg->batch);
        return GW_ERR_RANGE;
    }
    if (cfg->compression < COMPRESSION_MIN || cfg->compression > GW_Q16_ONE) {
        snprintf(why, why_size, "compression must be from 0.0625 (1/16) to 1");
        return GW_ERR_RANGE;
    }
    int error = iteration_time(&time, model, cfg, why, why_size);
    if (error)
        return error;
    *plan = (struct gw_plan){
        .layers = gw_memory_zeroed(model->layer_count, sizeof(plan->layers[0])),
        .tensors = gw_memory_zeroed(model->tensor_count, sizeof(plan->tensors[0])),
        .layer_count = model->layer_count,
        .forward = time / PASSES,
        .backward = time - time / PASSES,
    };
    gw_time *forward = gw_memory_zeroed(model->layer_count, 2 * sizeof(*forward));
    gw_time *backward = forward + model->layer_count;
    divide(model, plan->forward, FORWARD_FLOOR, forward);
    divide(model, plan->backward, (PASSES - 1) * FORWARD_FLOOR, backward);
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct gw_layer *layer = &model->layers[l];
        plan->layers[l] =
            (struct gw_plan_layer){.name = layer->name ? copy_text(layer->name) : NULL,
                                   .forward = forward[l],
                                   .backward = backward[l],
                                   .first_tensor = plan->tensor_count};
        if (layer->weights)
            add_tensor(plan, l, compressed(layer->weights, cfg->compression));
        if (layer->biases)
            add_tensor(plan, l, compressed(layer->biases, cfg->compression));
    }
    free(forward);
    return GW_OK;
}
