package view

import (
	"slices"
	"strings"
)

// gap is between columns, indent before the first.
const (
	gap    = "  "
	indent = " "
)

// column of a table.
type column struct {
	title string
	// right aligns numbers.
	right bool
	// rank says when the column is left out for lack of width: the highest first; 0: never.
	rank int
	// draw makes the cells of a column that takes the width which is left, from shortest to
	// longest; its rows hold nil.
	draw              func(row, width int) line
	shortest, longest int
}

// table is made of rows that have a cell for each column.
type table struct {
	columns []column
	rows    [][]line
}

// columnWidth is the width of the widest cell of column i.
func (t *table) columnWidth(i int) int {
	w := max(width(t.columns[i].title), t.columns[i].shortest)
	for _, row := range t.rows {
		w = max(w, row[i].width())
	}
	return w
}

func (t *table) width() int {
	w := len(indent) + len(gap)*(len(t.columns)-1)
	for i := range t.columns {
		w += t.columnWidth(i)
	}
	return w
}

// fit leaves out columns until the table is no wider than the limit, and draws what takes the rest
// of the width.
func (t *table) fit(limit int) {
	for t.width() > limit {
		worst := 0
		for i, c := range t.columns {
			if c.rank > t.columns[worst].rank {
				worst = i
			}
		}
		if t.columns[worst].rank == 0 {
			break
		}
		t.remove(worst)
	}
	for i, c := range t.columns {
		if c.draw != nil {
			size := min(c.longest, c.shortest+max(0, limit-t.width()))
			for r := range t.rows {
				t.rows[r][i] = c.draw(r, size)
			}
		}
	}
}

func (t *table) remove(i int) {
	t.columns = slices.Delete(t.columns, i, i+1)
	for r := range t.rows {
		t.rows[r] = slices.Delete(t.rows[r], i, i+1)
	}
}

// lines are the title line and the rows.
func (t *table) lines() []line {
	title := make([]line, len(t.columns))
	for i, c := range t.columns {
		title[i] = styled(strings.ToUpper(c.title), dim)
	}
	var lines []line
	for _, row := range append([][]line{title}, t.rows...) {
		l := text(indent)
		for i, cell := range row {
			if i > 0 {
				l = l.add(gap, plain)
			}
			l = append(l, t.aligned(cell, i)...)
		}
		lines = append(lines, l)
	}
	return lines
}

// aligned fills a cell up with blanks, but for the end of a line.
func (t *table) aligned(cell line, i int) line {
	blanks := span{strings.Repeat(" ", t.columnWidth(i)-cell.width()), plain}
	switch {
	case t.columns[i].right:
		return append(line{blanks}, cell...)
	case i == len(t.columns)-1:
		return cell
	}
	return append(slices.Clone(cell), blanks)
}
