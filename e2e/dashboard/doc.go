// Package dashboard tests the pages of kubectl jobferry dashboard in a real browser, headless
// Chromium, on a rig of a hub and two workers, one of which is lost on the way.
//
//	Chromium ──> kubectl-jobferry dashboard ──> proxy ──> hub ──> jobferry-manager ──> w1, w2
//	(browser)    (a process, as users run it)   (breaks)                               (w1 goes dark)
//
// Kueue joins the hub for the page of its queues.
//
// With -pictures, the tests write the pictures of docs/how-to/dashboard.md. Where there is no
// Chromium and it can't be installed, the tests say so loudly, and are skipped.
package dashboard
