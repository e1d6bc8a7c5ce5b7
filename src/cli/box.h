/*
 * What a box plot shows of many numbers, and their mean. Quartiles lie between two of the numbers
 * in proportion.
 */
#ifndef GW_CLI_BOX_H
#define GW_CLI_BOX_H

#include <stddef.h>
#include <stdint.h>

enum {
    GW_BOX_PARTS = 6,
};

/* Their names, in the order in which they are numbered. */
extern const char *const gw_box_names[GW_BOX_PARTS];

/* Sorts the numbers, of which there is at least one, and fills `box`, a number for each part. */
void gw_box_of(double *numbers, size_t count, double box[GW_BOX_PARTS]);

#endif
