// Package pki makes the certificates and keys of a test cluster: a certificate authority, server
// and client certificates, and the key pair that signs ServiceAccount tokens. Keys are ECDSA P-256,
// as they are made in microseconds; everything is valid for a day, and lives in memory until the
// caller writes it down.
package pki
