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
// The token of a Secret that says how long its tokens last (the annotation token-duration, which
// register and rotate write), if it is a ServiceAccount's token that expires. All others are left
// alone: client certificates, tokens of other issuers, and the copies of Kueue's Secrets.
//
// # When
//
// Between one half and two thirds of its lifetime, by the times in the token, so that several
// workers' tokens aren't renewed at once. The rest of the lifetime is for retries. Until then, the
// condition TokenRenewed is False, and the metric with the expiry time doesn't move.
//
// A worker writes the times into its tokens, and can't cause many renewals by them: a token that
// wasn't issued about now isn't taken, and the worker isn't asked again for a while.
//
// # Revocation
//
// Whoever has stolen a token may renew it as the manager does, and no Role can say which tokens he
// may request. But all of them end with their ServiceAccount: rotate makes a new one, and deletes the
// old one.
package tokens
