package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// What a cell of the dashboard's grid takes, in pixels.
const (
	cellWidth, cellHeight = 50, 26
	margin                = 4
)

var colours = []string{"#3274d9", "#e0752d", "#299c46", "#8f3bb8", "#c4162a", "#b8860b", "#17807e", "#666666"}

// sheet is the picture.
type sheet struct {
	body     strings.Builder
	from, to time.Time
	height   int
}

func (s *sheet) svg() string {
	const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">` +
		`<rect width="100%%" height="100%%" fill="#f4f5f5"/>%s</svg>` + "\n"
	return fmt.Sprintf(frame, 24*cellWidth, s.height*cellHeight, s.body.String())
}

// draw draws a panel.
func (s *sheet) draw(p *panel, lines []line) {
	x, y := p.GridPos.X*cellWidth+margin, p.GridPos.Y*cellHeight+margin
	width, height := p.GridPos.W*cellWidth-2*margin, p.GridPos.H*cellHeight-2*margin
	s.height = max(s.height, p.GridPos.Y+p.GridPos.H)
	title := html.EscapeString(p.Title)
	if p.Type == "row" {
		fmt.Fprintf(&s.body, `<text x="%d" y="%d" font-size="14" font-weight="bold">%s</text>`, x, y+14, title)
		return
	}
	fmt.Fprintf(&s.body, `<g transform="translate(%d %d)"><rect width="%d" height="%d" fill="#fff" stroke="#d8d9da"/><text x="6" y="15" font-weight="bold">%s</text>`,
		x, y, width, height, title)
	if p.Type != "stat" {
		s.plot(lines, width, height)
	} else if len(lines) > 0 {
		last := lines[0].floats[len(lines[0].floats)-1].F
		fmt.Fprintf(&s.body, `<text x="%d" y="%d" font-size="30" text-anchor="middle">%.4g</text>`, width/2, height-20, last)
	}
	s.body.WriteString("</g>\n")
}

func (s *sheet) plot(lines []line, width, height int) {
	const top, left = 24, 44
	shown, most := min(len(lines), len(colours)), 0.0
	for _, l := range lines {
		for _, f := range l.floats {
			if isFinite(f) {
				most = max(most, f.F)
			}
		}
	}
	bottom := height - 6 - 13*shown
	fmt.Fprintf(&s.body, `<path d="M%d %dV%dH%d" fill="none" stroke="#999"/><text x="%d" y="%d" text-anchor="end">%.3g</text><text x="%d" y="%d" text-anchor="end">0</text>`,
		left, top, bottom, width-6, left-4, top+8, most, left-4, bottom)
	for i, l := range lines[:shown] {
		var path strings.Builder
		for _, f := range l.floats {
			if isFinite(f) {
				at := float64(time.UnixMilli(f.T).Sub(s.from)) / float64(max(s.to.Sub(s.from), 1))
				fmt.Fprintf(&path, "%.1f,%.1f ", left+at*float64(width-6-left), float64(bottom)-f.F/max(most, 1e-9)*float64(bottom-top))
			}
		}
		fmt.Fprintf(&s.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, strings.TrimSpace(path.String()), colours[i])
		fmt.Fprintf(&s.body, `<text x="%d" y="%d" fill="%s">%s</text>`, left, bottom+13*(i+1), colours[i], html.EscapeString(l.name))
	}
}

func isFinite(f promql.FPoint) bool { return !math.IsNaN(f.F) && !math.IsInf(f.F, 0) }
