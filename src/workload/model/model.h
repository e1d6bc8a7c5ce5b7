/*
 * Neural networks as tables: what each layer computes and how many parameters it has.
 *
 * A model is a CSV file, one row per layer from front to back:
 *
 *     layer,kind,weights,biases,macs
 *     conv1,conv,9408,0,118013952
 *     conv1.bn,bn,64,64,0
 *
 * Lines that begin with # are comments. The tables of the project are in models/ and part of the
 * program; their totals are those of the published architectures. As usual, the MACs are those of
 * convolutions, matrix products and attention; what else a layer does counts as none, and takes
 * time by the floor of compute.h. Only what is learned is in a table: the running statistics of a
 * batch normalisation are not.
 */
#ifndef GW_WORKLOAD_MODEL_H
#define GW_WORKLOAD_MODEL_H

#include <stdint.h>

struct gw_layer {
    char *name;
    char *kind;       /* conv, fc, bn, ...: for people */
    uint64_t weights; /* parameters of its weight tensor; 0: it has none */
    uint64_t biases;  /* of its bias, or of its normalisation's shift; 0: none */
    uint64_t macs;    /* multiply-accumulate operations of a forward pass, of one sample */
};

struct gw_model {
    char *name;              /* of the project's table, or of the file, without its folder */
    struct gw_layer *layers; /* front to back */
    uint32_t layer_count;
    uint32_t tensor_count; /* the weights and the biases of a layer are two */
    uint64_t params;
    uint64_t macs;
};

/*
 * Finds the model called `name`, or, if it ends in .csv, reads that file. Returns 0, or a negative
 * error with a sentence in why[why_size] that names what is wrong, and in a file the line; then
 * there is nothing to free. gw_model_free() takes a model back.
 */
int gw_model_load(struct gw_model *model, const char *name, char *why, uint32_t why_size);
void gw_model_free(struct gw_model *model);

/* Names of the project's models, sorted; NULL ends them. */
const char *const *gw_model_names(void);

#endif
