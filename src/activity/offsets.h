/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Offsets that the switches of activities share with C. switch.c asserts each offset. */
#ifndef WEFT_SRC_ACTIVITY_OFFSETS_H
#define WEFT_SRC_ACTIVITY_OFFSETS_H

/* struct weft__activity_hot */
#define HOT_LIMIT 0
#define HOT_FLAG 8
#define HOT_ARGUMENTS 12
#define HOT_TARGET 16
#define HOT_GROUP 32
#define HOT_FULL 40
/* struct weft_activity */
#define ACTIVITY_FRAMES 8
#define ACTIVITY_SIZE 44
/* struct weft__activity_group */
#define GROUP_BASE 0
#define GROUP_DRIVER 8
#define GROUP_DEEPEST 16
#define GROUP_SEGMENT 24
#define GROUP_BLOCKS 32
/* struct weft__activity_stack, whose end is the end of its mapping */
#define STACK_CAME_FROM 8
#define STACK_RECORD 48
#define PAGE 4096
/* The largest alignment of an argument by value. */
#define ARGUMENT_ALIGNMENT 256
/* A call that finds this many bytes of its segment used begins the next segment. */
#ifdef WEFT_TINY
#define SEGMENT_BYTES 64
#else
#define SEGMENT_BYTES 1536
#endif
/* struct weft__segment */
#define SEGMENT_RECORD 32
/* Blocks up to this many bytes are kept in lists, one list for each multiple of 16. */
#define LARGEST_BLOCK 2048

#endif
