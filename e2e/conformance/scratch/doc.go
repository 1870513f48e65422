// Package scratch makes Go modules of the test sources of Kubernetes, or of another module, in
// folders that are thrown away. Nothing of the sources is kept in the repository:
//
//	module cache ──Source──▶ text ──Change──▶ text ──Write──▶ scratch module ──Compile──▶ test program
//	      └────────────────────────── as they are ──────────────────────────CompileTestOf──▶ test program
//
// The versions are those that e2e/versions pins. A Change must fit exactly once: sources that have
// changed upstream are an error, and not a test that silently tests something else.
package scratch
