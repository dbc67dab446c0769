/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A table of labels has the labels of one function: the twin gets its own. */
// RUN: %twins && %see=TABLE
// TABLE: @interpret.labels.yielding = internal {{.*}}[ptr blockaddress(@interpret.yielding, %add),
// TABLE-SAME: ptr blockaddress(@interpret.yielding, %end)]
// TABLE: @interpret.labels = internal {{.*}}[ptr blockaddress(@interpret, %add), ptr blockaddress(@interpret, %end)]
// TABLE-LABEL: define {{.*}}@interpret(
// TABLE-NOT: labels.yielding
// TABLE-LABEL: define {{.*}}@interpret.yielding(
// TABLE-NOT: @interpret.labels,
// TABLE: getelementptr {{.*}}@interpret.labels.yielding
// TABLE-NOT: @interpret.labels,
// TABLE: indirectbr
#ifndef LINKAGE
#define LINKAGE
#endif
LINKAGE int interpret(const int *code)
{
	static const void *const labels[] = {&&add, &&end};
	int sum = 0;

	goto *labels[*code++];
add:
	sum += *code++;
	goto *labels[*code++];
end:
	return sum;
}
