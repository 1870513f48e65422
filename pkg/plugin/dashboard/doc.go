// Package dashboard serves the web pages of kubectl jobferry dashboard on loopback.
//
//	browser ── GET, token ──> guard ──> pages ──> view (models) ──> templates
//	        <── server-sent events ──── stream <── hub: Changed()
//	        <── a log, as it grows ──── log    <── hub: Log()
//
// # Security
//
// The server has the rights of its user, so it answers nobody else. It listens on 127.0.0.1. A
// request needs the token that is in the printed address; the first one exchanges it for a cookie,
// which other sites can't have sent (SameSite=Strict) and scripts can't read. Browsers send a
// cookie to all ports of a host, so all pages, and the cookie, are below a path that is a secret,
// too: other servers on 127.0.0.1 don't get the cookie. The Host header must be the address itself,
// so that no name that leads to loopback passes (DNS rebinding). Only GET and HEAD are answered,
// and nothing is written to the hub. The Content-Security-Policy allows nothing but the server's
// own scripts, styles and connections. All that a page shows comes through html/template, as names
// and messages are other people's input.
//
// # Live
//
// A page is rendered on the server, for the first time and at each change. The stream sends it
// whole and at most twice a second, and only if it differs; app.js changes the differences in the
// document, so that focus, selection and scroll position stay. The URL is all the state that a page
// has: a reload and the back button keep the filters. The page of the usage takes more: it's made
// again every three seconds.
//
// # Trade-offs
//
// Pages of 100 Jobs, rendered on the server, need neither a framework nor virtual rows in the
// browser. Indexes are a canvas: a hundred thousand nodes in a document would stall it.
package dashboard
