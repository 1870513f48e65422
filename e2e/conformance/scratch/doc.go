// Package scratch makes Go modules of Kubernetes' own test sources, changed on the way, in folders
// that are thrown away. Nothing of the sources is kept in the repository:
//
//	module cache ──Source──▶ text ──Change──▶ text ──Write──▶ scratch module ──Compile──▶ test program
//
// The versions are those that e2e/versions pins for a release. A Change must fit exactly once:
// sources that have changed upstream are an error, and not a test that silently tests something
// else.
package scratch
