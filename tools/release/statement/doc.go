// Package statement writes what a release says of its files: what is in them (SBOM), how they were
// made (Provenance), and their checksums (Sums).
package statement
