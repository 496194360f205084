"""What agents do: requests for surfaces, and calls. Requests never write configuration, and rows never leave this
package.
"""
