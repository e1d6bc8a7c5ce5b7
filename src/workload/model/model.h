/*
 * Neural networks as tables: what each layer computes and how many parameters it has.
 *
 * A model is a CSV file, one row per layer from front to back; those of the project are in models/
 * and part of the program. Totals are those of the published architectures.
 */
#ifndef GW_WORKLOAD_MODEL_H
#define GW_WORKLOAD_MODEL_H

#include <stdint.h>

struct gw_layer {
    char *name;
    uint64_t weights; /* parameters of its weight tensor; 0: it has none */
    uint64_t biases;  /* of its bias, or of its normalisation's shift; 0: none */
    uint64_t macs;    /* multiply-accumulate operations of a forward pass, of one sample */
};

struct gw_model {
    char *name;
    struct gw_layer *layers; /* front to back */
    uint32_t layer_count;
    uint32_t tensor_count;
    uint64_t params;
    uint64_t macs;
};

/*
 * Finds the model called `name`, or, if it ends in .csv, reads that file. Returns 0, or a negative
 * error with a sentence in why[why_size] that names what is wrong, and the line. gw_model_free()
 * takes it back.
 */
int gw_model_load(struct gw_model *model, const char *name, char *why, uint32_t why_size);
void gw_model_free(struct gw_model *model);

/* Names of the project's models, sorted; NULL ends them. */
const char *const *gw_model_names(void);

#endif
