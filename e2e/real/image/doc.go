// Package image makes container images without a container engine, for real nodes that can't pull
// any.
//
//	Dockerfile ──Parse──> stages ──Build──> folder of the last stage ──┐
//	programs of this machine ──────────────> folder                    ├──Write──> OCI archive, for `ctr images import`
//
// # Trade-offs
//
// Build knows the instructions that our Dockerfile uses, and refuses others rather than skip them.
// The base image of a stage that compiles can't be had without a registry: the machine's own root
// takes its place, under an overlay, with its Go toolchain where the golang image has it. So what
// is checked is that the stages' commands build the programs and that the image holds, and starts
// as, what the Dockerfile says; not the base image.
package image
