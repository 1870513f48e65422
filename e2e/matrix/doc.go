// Package matrix runs the main stories of the other packages' tests for pairs of Kubernetes
// releases, one for the hub and one for its workers, and writes which features work with which
// pair.
//
//	features (table) x pairs --> runs of test packages --> files of results --> docs/reference/compatibility.md
//
// Words:
//   - feature: a row of the page, with the tests that show it: its stories.
//   - run: one test package with one hub and one worker release, and the stories of all features
//     that are told there. Runs that depend on the hub alone, or on the worker, count for all pairs
//     with it.
//   - results: a folder with a file for each run. What has passed there isn't run again, so a
//     matrix that was stopped continues, and what failed is tried again.
//
// The releases reach the tests by the environment: see binaries.HubVariable. Package table is the
// pure part: it reads what go test says, and writes the page.
package matrix
