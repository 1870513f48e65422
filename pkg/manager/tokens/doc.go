// Package tokens renews the tokens by which the hub logs in to its workers, so that they expire and
// nobody has to rotate them by hand.
//
//	registration Secret ──▶ decide ──▶ wait | renew | leave alone
//	                                     │
//	     TokenRequest for the ServiceAccount itself, in the worker, by the worker's own client
//	                                     │
//	                        new kubeconfig in the Secret ──▶ package clusters rotates the connection
//
// # What is renewed
//
// The manager renews the token of a Secret that says how long its tokens last (the annotation
// token-duration, which register and rotate write), if it is a ServiceAccount's token that expires.
// It doesn't change others: client certificates, tokens of other issuers, and the copies of Kueue's
// Secrets.
//
// # When
//
// The manager renews a token between one half and two thirds of its lifetime, by the times in the
// token, so that it doesn't renew the tokens of several workers at once. The rest of the lifetime
// is for retries. While these fail, the condition TokenRenewed is False, and the metric with the
// expiry time doesn't change. Each worker is asked beside the others, and once at a time.
//
// A worker writes the times into its tokens, but can't cause many renewals by them. The manager
// refuses a token that wasn't issued about now, and doesn't ask that worker again for a while.
//
// # Revocation
//
// Whoever has stolen a token may renew it as the manager does: no Role can limit which tokens its
// holder requests. But all of these tokens end with their ServiceAccount. The command rotate makes
// a new ServiceAccount, and deletes the old one.
package tokens
