// The default theme, with room for wide tables.
import DefaultTheme from 'vitepress/theme-without-fonts'
import './tables.css'

export default DefaultTheme
